import Policy
import Testing

@Suite("The enforced share of clients")
struct EnforcedShareTests {
    /// Computed with Python: int.from_bytes(sha256(seed + "." + key).digest(), "big") % 100000000.
    @Test(
        "M2: a client's place is SHA-256(seed . key) modulo 100,000,000, as in Remote Config",
        arguments: [
            ("transfers", "203.0.113.7", 15_052_379), ("transfers", "client-0001", 88_937_921),
            ("spring-2026", "client-0001", 30_170_833), ("", "client-0001", 99_377_808),
            ("transfers", "", 73_731_097), ("everything-else", "2001:db8:0:7::/64", 54_554_214),
        ] as [(String, String, UInt32)])
    func knownPlaces(seed: String, key: String, place: UInt32) {
        #expect(EnforcedShare(seed: seed, limit: 1).place(of: key) == place)
        #expect(EnforcedShare(seed: seed, limit: place).isInside(key))
        #expect(!EnforcedShare(seed: seed, limit: place - 1).isInside(key))
    }

    @Test("M2: of 2,000 clients exactly the 500 that Python counts are inside at 25 %")
    func quarter() {
        let share = EnforcedShare(seed: "transfers", limit: 25_000_000)
        #expect(clients.count { share.isInside($0) } == 500)
    }

    @Test("M2: who is enforced at a share stays enforced at every larger one")
    func monotone() {
        var inside: [Bool] = clients.map { _ in false }
        for percent in 0...100 {
            let share = EnforcedShare(seed: "transfers", limit: UInt32(percent) * 1_000_000)
            for (index, client) in clients.enumerated() {
                let isInside = share.isInside(client)
                #expect(isInside == share.isInside(client))
                #expect(isInside || !inside[index])
                inside[index] = isInside
            }
        }
    }

    @Test("M2: nobody is inside 0 %, everybody inside 100 %")
    func bounds() {
        let nobody = EnforcedShare(seed: "transfers", limit: 0)
        let everybody = EnforcedShare(seed: "transfers", limit: 100_000_000)
        #expect(clients.allSatisfy { !nobody.isInside($0) })
        #expect(clients.allSatisfy { everybody.isInside($0) })
        #expect(EnforcedShare(seed: "transfers", limit: .max) == everybody)
    }

    @Test("M2: a route's seed is its name, and another seed picks other clients")
    func seeds() {
        var route = route("transfers", "/*", mode: .enforce)
        route.enforcedShare = 25_000_000
        let byName = clients.map { route.share.isInside($0) }
        #expect(route.share == EnforcedShare(seed: "transfers", limit: 25_000_000))
        route.seed = "spring-2026"
        #expect(clients.map { route.share.isInside($0) } != byName)
    }

    @Test(
        "a seed is 1 to 32 of -_.0-9a-zA-Z",
        arguments: [
            ("a", true), ("spring-2026_A.b", true), (String(repeating: "x", count: 32), true),
            ("", false), (String(repeating: "x", count: 33), false), ("a b", false), ("é", false),
            ("a/b", false),
        ])
    func seedText(seed: String, isSeed: Bool) {
        #expect(EnforcedShare.isSeed(seed) == isSeed)
    }

    private let clients = (0..<2_000).map { "client-\($0)" }
}

@Suite("Shares as people write them")
struct ShareTextTests {
    @Test(
        "reads percent exactly",
        arguments: [
            ("0", 0), ("0%", 0), ("100", 100_000_000), ("100.000000%", 100_000_000),
            ("2%", 2_000_000), ("2.5%", 2_500_000), ("0.000001", 1), ("99.999999%", 99_999_999),
            ("0.07%", 70_000), ("33.333333", 33_333_333), ("1.00000000000000000000", 1_000_000),
            ("007", 7_000_000), ("0.29", 290_000), ("0.57", 570_000),
        ] as [(String, UInt32)])
    func reads(text: String, share: UInt32) {
        #expect(parseShare(text) == share)
    }

    @Test(
        "refuses everything else",
        arguments: [
            "", "%", "-1", "+1", "1e1", ".5", "5.", "5.%", "1.2.3", "100.000001", "101", "1,5",
            "2 %", " 2", "2%%", "0.0000001", "0x10", "NaN", "inf", "٢", "999999999999", "1_0",
            "99999999999999999999999999", "%2",
        ])
    func refuses(text: String) {
        #expect(parseShare(text) == nil)
    }

    @Test(
        "takes a number to the nearest millionth of a percent",
        arguments: [
            (0, 0), (100, 100_000_000), (25, 25_000_000), (0.29, 290_000), (0.57, 570_000),
            (33.333333, 33_333_333), (0.000001, 1), (99.999999, 99_999_999),
        ] as [(Double, UInt32)])
    func numbers(percent: Double, share: UInt32) {
        #expect(parseShare(percent) == share)
    }

    @Test(
        "refuses numbers outside 0...100 or finer than a millionth of a percent",
        arguments: [-0.000001, 100.000001, .nan, .infinity, 0.0000005, 1.0 / 3])
    func refusedNumbers(percent: Double) {
        #expect(parseShare(percent) == nil)
    }
}

extension EnforcedShare {
    fileprivate func isInside(_ key: String) -> Bool { isInside(Array(key.utf8).span) }

    fileprivate func place(of key: String) -> UInt32 { place(of: Array(key.utf8).span) }
}
