import Testing

@testable import Replay

@Suite("Slots and masters of a Redis Cluster")
struct RedisClusterMapTests {
    /// First and last slot, host and port.
    typealias Spec = (Int64, Int64, String?, Int64)

    private static let asked = RedisAddress.tcp(host: "10.0.0.9", port: 7000)

    private func integer(_ value: Int64) -> RedisReply { RedisReply(.integer, integer: value) }

    private func array(_ elements: [RedisReply]) -> RedisReply {
        let array = RedisReply(.array)
        for element in elements { array.append(element) }
        return array
    }

    private func node(_ host: String?, _ port: Int64) -> RedisReply {
        let host = host.map { RedisReply(.string, bytes: Array($0.utf8)) } ?? RedisReply(.null)
        return array([host, integer(port), RedisReply(.string, bytes: Array("id".utf8))])
    }

    private func makeMap(_ specs: [Spec]) -> RedisClusterMap? {
        let entries = specs.map { spec in
            array([integer(spec.0), integer(spec.1), node(spec.2, spec.3), node("r", 1)])
        }
        return RedisClusterMap(array(entries), from: Self.asked)
    }

    @Test(
        "keys are in the slots that the specification says",
        arguments: [
            ("123456789", 0x31C3), ("foo", 12182), ("", 0), ("{user1000}.following", 3443),
            ("{user1000}.followers", 3443), ("foo{}{bar}", 8363), ("foo{{bar}}zap", 4015),
            ("foo{bar}{zap}", 5061), ("bar", 5061),
        ])
    func slots(key: String, slot: UInt16) {
        #expect(RedisSlot.slot(of: Array(key.utf8)) == slot)
    }

    @Test(
        "there is a hash tag for each slot",
        arguments: [0, 1, 8191, 8192, 12182, 16383] as [UInt16])
    func tags(slot: UInt16) {
        let keys = RedisKeys(prefix: "portcullis:")
        #expect(RedisSlot.slot(of: RedisSlot.tag(in: slot)) == slot)
        #expect(RedisSlot.slot(of: keys.marker(inSlot: slot)) == slot)
        #expect(RedisSlot.slot(of: RedisKeys(prefix: "a{b").marker(inSlot: slot)) == slot)
        let tagged = RedisKeys(prefix: "{one}:")
        #expect(tagged.marker(inSlot: slot) == tagged.marker)
    }

    @Test("a slot has the master that the map says; none where there is a gap")
    func masters() throws {
        let specs: [Spec] = [(5461, 10922, "b", 2), (0, 5459, "a", 1), (10923, 16383, nil, 3)]
        let map = try #require(makeMap(specs))
        #expect(map.master(of: 0) == .tcp(host: "a", port: 1))
        #expect(map.master(of: 5459) == .tcp(host: "a", port: 1))
        #expect(map.master(of: 5460) == nil)
        #expect(map.master(of: 5461) == .tcp(host: "b", port: 2))
        // A node that does not know its own host is where it was asked.
        #expect(map.master(of: 16383) == .tcp(host: "10.0.0.9", port: 3))
        #expect(map.masters.count == 3)
    }

    @Test("landmarks are the middle, the first and the last slot of a master")
    func landmarks() throws {
        let specs: [Spec] = [(0, 99, "a", 1), (100, 199, "b", 2), (200, 299, "a", 1)]
        let map = try #require(makeMap(specs))
        #expect(map.landmarks(of: .tcp(host: "a", port: 1)) == [200, 0, 299])
        #expect(map.landmarks(of: .tcp(host: "b", port: 2)) == [150, 100, 199])
        #expect(map.landmarks(of: .tcp(host: "z", port: 9)).isEmpty)
        let one = try #require(makeMap([(7, 7, "c", 3)]))
        #expect(one.landmarks(of: .tcp(host: "c", port: 3)) == [7])
    }

    @Test(
        "a map that makes no sense is none",
        arguments: [
            [(5, 4, "a", 1)], [(0, 16384, "a", 1)], [(-1, 5, "a", 1)], [(0, 5, "a", 0)],
            [(0, 5, "a", 65536)], [(0, 5, "a b", 1)], [(0, 5, "a", 1), (5, 6, "b", 2)], [],
        ] as [[Spec]])
    func nonsense(spans: [Spec]) {
        #expect(makeMap(spans) == nil)
    }

    @Test("redirections are read; other errors, and broken ones, are none")
    func redirections() {
        let read = { (text: String) in
            RedisRedirection(RedisReply(.error, bytes: Array(text.utf8)), from: Self.asked)
        }
        #expect(read("MOVED 1 h:6381") == .moved(.tcp(host: "h", port: 6381)))
        #expect(read("ASK 3999 ::1:6381") == .ask(.tcp(host: "::1", port: 6381)))
        #expect(read("MOVED 1 :6381") == .moved(.tcp(host: "10.0.0.9", port: 6381)))
        for text in [
            "MOVED", "MOVED 1", "MOVED 1 h", "MOVED 1 h:", "MOVED 1 h:0", "MOVED 1 h:70000",
            "MOVED 1 h:6381 x", "ERR 1 h:6381", "CLUSTERDOWN Hash slot not served",
        ] {
            #expect(read(text) == nil, "\(text)")
        }
    }
}
