import Configuration
import Reactor
import Testing

@testable import Proxy

@Suite("Which servers of an upstream are used")
struct AvailabilityTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    private func pool(
        _ count: Int, known: [UpstreamServer] = [], _ change: (inout Upstream) -> Void = { _ in }
    ) throws -> UpstreamPool {
        var upstream = Upstream(name: "api", servers: [])
        upstream.balance = .roundRobin
        change(&upstream)
        let addresses = try (0..<count).map {
            try #require(SocketAddress(literal: "127.0.0.1", port: UInt16(9000 + $0)))
        }
        return UpstreamPool(upstream, addresses: addresses, known: known)
    }

    private func unhealthy(_ indices: [Int], change: UInt64 = 1) -> HealthSnapshot {
        HealthSnapshot(
            change: change,
            unhealthy: Set(
                indices.map { .init(upstream: "api", label: "127.0.0.1:\(9000 + $0)") }))
    }

    private func chosen(_ pool: UpstreamPool, _ count: Int = 12) -> Set<Int?> {
        Set((0..<count).map { _ in pool.choose(tried: 0, now: start) })
    }

    @Test(
        "all servers are used while fewer than the panic threshold are healthy",
        arguments: [
            (4, [0], 50.0, [1, 2, 3], false), (4, [0, 1], 50, [2, 3], false),
            (4, [0, 1, 2], 50, [0, 1, 2, 3], true), (4, [0, 1, 2], 25, [3], false),
            (4, [0, 1, 2, 3], 1, [0, 1, 2, 3], true), (2, [0], 100, [0, 1], true),
            (1, [0], 50, [0], true),
        ] as [(Int, [Int], Double, [Int], Bool)])
    func panic(count: Int, away: [Int], threshold: Double, used: [Int], isPanic: Bool) throws {
        let pool = try pool(count) { $0.panicThreshold = threshold }
        pool.adopt(unhealthy(away), now: start)
        #expect(chosen(pool) == Set(used))
        #expect(pool.isPanicking == isPanic)
    }

    @Test("without a panic threshold there may be no server at all", arguments: [1, 3])
    func noServer(count: Int) throws {
        let pool = try pool(count) { $0.panicThreshold = 0 }
        pool.adopt(unhealthy([0, 1, 2]), now: start)
        #expect(chosen(pool) == [nil])
        #expect(!pool.isPanicking)
        pool.adopt(unhealthy([]), now: start)
        #expect(chosen(pool) == Set(0..<count))
    }

    @Test("never are so many ejected that the rest would panic, and one always stays")
    func ejectionLimit() throws {
        let half = try pool(4)
        #expect((0..<4).map { half.eject($0, now: start) != nil } == [true, true, false, false])
        #expect(chosen(half) == [2, 3])
        #expect(half.eject(0, now: start) == nil, "it is away already")
        let all = try pool(3) { $0.panicThreshold = 0 }
        #expect((0..<3).map { all.eject($0, now: start) != nil } == [true, true, false])
        #expect(try self.pool(1).eject(0, now: start) == nil)
    }

    @Test("a server that comes back gets a small part of its share at first")
    func slowStart() throws {
        let pool = try pool(2)
        let time = try #require(pool.eject(0, now: start))
        let back = start.advanced(by: time)
        func share(at now: MonotonicInstant) -> Int {
            (0..<2000).count { _ in pool.choose(tried: 0, now: now) == 0 }
        }
        #expect(share(at: start) == 0)
        #expect(100...300 ~= share(at: back), "a tenth of every other request")
        #expect(share(at: back.advanced(by: .seconds(10))) == 1000)
    }

    @Test("servers that are still there after a look-up keep what is known about them")
    func takesOver() throws {
        let before = try pool(3)
        before.adopt(unhealthy([1]), now: start)
        _ = before.choose(tried: 0b110, now: start)
        let after = try pool(2, known: before.servers)
        #expect(after.servers[0] === before.servers[0] && after.servers[0].activeCount == 1)
        #expect(chosen(after) == [0])
        before.retire(except: after.servers)
        #expect(before.servers.map(\.isRetired) == [false, false, true])
        before.release(0)
        #expect(after.servers.map(\.label) == ["127.0.0.1:9000", "127.0.0.1:9001"])
    }
}
