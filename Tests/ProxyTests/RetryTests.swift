import Configuration
import Reactor
import Testing

@testable import Proxy

@Suite("Retries and consistent hashing")
struct RetryTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    private func after(_ seconds: Int64) -> MonotonicInstant {
        start.advanced(by: .seconds(seconds))
    }

    // MARK: The budget

    private func taken(_ budget: inout RetryBudget, _ share: Double, at now: MonotonicInstant)
        -> Int
    {
        var count = 0
        while count < 10_000, budget.take(at: now, share: share) { count += 1 }
        return count
    }

    @Test(
        "O8: retries are a share of the requests, and ten in any case",
        arguments: [(0, 20.0, 10), (30, 20, 10), (100, 20, 20), (1000, 20, 200), (1000, 0, 0)])
    func budget(requests: Int, share: Double, allowed: Int) {
        var budget = RetryBudget()
        for _ in 0..<requests { budget.requested(at: start) }
        #expect(taken(&budget, share, at: start) == allowed)
    }

    @Test("O8: what was spent is there again when its time is over, and not before")
    func budgetWindows() {
        var budget = RetryBudget()
        for _ in 0..<1000 { budget.requested(at: start) }
        var counts = [taken(&budget, 10, at: start), taken(&budget, 10, at: after(9))]
        // The window before still counts, its requests and its retries.
        counts.append(taken(&budget, 10, at: after(11)))
        for _ in 0..<500 { budget.requested(at: after(11)) }
        counts.append(taken(&budget, 10, at: after(12)))
        // The first window is forgotten: 50 retries of 500 requests, and then nothing at all.
        counts.append(taken(&budget, 10, at: after(22)))
        counts.append(taken(&budget, 10, at: after(60)))
        #expect(counts == [100, 0, 0, 50, 0, 10])
    }

    // MARK: Hashing

    private func pool(_ ports: [UInt16]) throws -> UpstreamPool {
        var upstream = Upstream(name: "api", servers: [])
        upstream.balance = .hash
        let addresses = try ports.map {
            try #require(SocketAddress(literal: "127.0.0.1", port: $0))
        }
        return UpstreamPool(upstream, addresses: addresses)
    }

    private func owners(_ pool: UpstreamPool, _ keys: Range<UInt64>) -> [String] {
        keys.map { key in
            let hash = RendezvousHash.hash("client \(key)".utf8)
            guard let index = pool.choose(tried: 0, now: start, key: hash) else { return "" }
            pool.release(index)
            return pool.servers[index].label
        }
    }

    @Test("a client keeps its server when others go, come, or change places", arguments: 2...9)
    func minimalMovement(count: Int) throws {
        let ports = (0..<UInt16(count)).map { 9000 + $0 }
        let keys: Range<UInt64> = 0..<2000
        let before = owners(try pool(ports), keys)
        #expect(owners(try pool(ports.reversed()), keys) == before)
        let gone = "127.0.0.1:\(9000 + count / 2)"
        let fewer = owners(try pool(ports.filter { $0 != UInt16(9000 + count / 2) }), keys)
        for (old, new) in zip(before, fewer) where old != gone { #expect(old == new) }
        #expect(!fewer.contains(gone))
        let more = owners(try pool(ports + [9999]), keys)
        for (old, new) in zip(before, more) { #expect(new == old || new == "127.0.0.1:9999") }
        // Fair: no server has less than two thirds or more than four thirds of its part.
        for port in ports {
            let part = before.count { $0 == "127.0.0.1:\(port)" } * count
            #expect(keys.count * 2 / 3...keys.count * 4 / 3 ~= part, "\(port): \(part)")
        }
    }

    @Test("the keys of a server that is away go to all others, and come back one by one")
    func hashAndHealth() throws {
        let pool = try pool([9000, 9001, 9002])
        let keys: Range<UInt64> = 0..<1000
        let before = owners(pool, keys)
        let time = try #require(pool.eject(1, now: start))
        let during = owners(pool, keys)
        let movers = zip(before, during).filter { $0.0 == "127.0.0.1:9001" }.map(\.1)
        #expect(Set(movers) == ["127.0.0.1:9000", "127.0.0.1:9002"])
        for (old, new) in zip(before, during) where old != "127.0.0.1:9001" { #expect(old == new) }
        var back: [Set<UInt64>] = []
        for seconds in [0, 5, 10] {
            let now = start.advanced(by: time).advanced(by: .seconds(seconds))
            let here = keys.filter { key in
                let hash = RendezvousHash.hash("client \(key)".utf8)
                guard let index = pool.choose(tried: 0, now: now, key: hash) else { return false }
                pool.release(index)
                return index == 1
            }
            back.append(Set(here))
        }
        #expect(back[0].isSubset(of: back[1]) && back[1].isSubset(of: back[2]))
        #expect(back[0].count < back[1].count && back[1].count < back[2].count)
        #expect(back[2].count == movers.count)
    }
}
