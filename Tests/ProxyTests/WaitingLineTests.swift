import Configuration
import Reactor
import TestKit
import Testing

@testable import Proxy

@Suite("Limits of upstream servers")
struct WaitingLineTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    private func pool(
        servers: Int, connections: Int, loops: Int, _ balance: Upstream.Balance = .roundRobin
    ) throws -> UpstreamPool {
        var upstream = Upstream(name: "api", servers: [])
        upstream.balance = balance
        upstream.limits.connections = connections
        upstream.limits.queue = 3
        let addresses = try (0..<servers).map {
            try #require(SocketAddress(literal: "127.0.0.1", port: UInt16(9000 + $0)))
        }
        return UpstreamPool(upstream, addresses: addresses, loops: loops)
    }

    @Test(
        "a server takes its limit, each loop its part of that, and at least one",
        arguments: [(1, 4, 1, 4), (1, 4, 2, 2), (2, 4, 2, 4), (3, 1, 4, 3)])
    func capacity(servers: Int, connections: Int, loops: Int, total: Int) throws {
        let pool = try pool(servers: servers, connections: connections, loops: loops)
        for _ in 0..<total { #expect(pool.choose(tried: 0, now: start) != nil) }
        #expect(pool.choose(tried: 0, now: start) == nil && pool.isFull)
        pool.release(0)
        #expect(pool.choose(tried: 0, now: start) == 0 && !pool.isFull)
    }

    @Test("who is not healthy does not make the upstream full")
    func fullOrUnhealthy() throws {
        let pool = try pool(servers: 1, connections: 1, loops: 1)
        #expect(pool.choose(tried: 1, now: start) == nil && !pool.isFull)
    }

    @Test("a client whose server is full goes to its second choice")
    func hashOverflows() throws {
        let pool = try pool(servers: 3, connections: 1, loops: 1, .hash)
        let key = RendezvousHash.hash("somebody".utf8)
        let chosen = (0..<4).map { _ in pool.choose(tried: 0, now: start, key: key) }
        #expect(Set(chosen.prefix(3)) == [0, 1, 2] && chosen[3] == nil)
    }

    @Test("those who wait are called in turn, once for each server that takes one more")
    func turns() async throws {
        try await TestLoop().run { loop in
            let pool = try self.pool(servers: 1, connections: 1, loops: 1)
            let line = pool.line
            _ = pool.choose(tried: 0, now: self.start)
            let places = (0..<4).map { _ in
                line.join(Waiter(loop: loop.loop), limit: pool.queueLimit)
            }
            #expect(places.map { $0 == nil } == [false, false, false, true])
            let waiting = places.compactMap { $0 }
            pool.release(0)
            #expect(waiting.map(\.isCalled) == [true, false, false])
            #expect(line.isOccupied, "who comes now does not overtake")
            // The first makes no use of its turn, the second had gone before.
            line.leave(waiting[1], isGivenUp: true)
            line.leave(waiting[0], isGivenUp: true)
            #expect(waiting.map(\.isCalled) == [true, false, true])
            line.leave(waiting[2], isGivenUp: false)
            #expect(!line.isOccupied)
            line.callNext()
            #expect(!line.isOccupied)
        }
    }
}
