import Configuration
import Reactor
import Testing

@testable import Proxy

@Suite("Upstream pool")
struct UpstreamPoolTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    private func pool(_ count: Int, _ balance: Upstream.Balance) throws -> UpstreamPool {
        var upstream = Upstream(
            name: "api",
            servers: (0..<count).map { .tcp(host: "127.0.0.1", port: UInt16(9000 + $0)) })
        upstream.balance = balance
        let addresses = try (0..<count).map {
            try #require(SocketAddress(literal: "127.0.0.1", port: UInt16(9000 + $0)))
        }
        return UpstreamPool(upstream, addresses: addresses)
    }

    @Test("round robin takes the servers in turn, whatever they are busy with")
    func roundRobin() throws {
        let pool = try pool(3, .roundRobin)
        let chosen = (0..<7).map { _ in pool.choose(tried: 0, now: start) }
        #expect(chosen == [0, 1, 2, 0, 1, 2, 0])
    }

    @Test("least requests prefers the idlest server, and takes equals in turn")
    func leastRequests() throws {
        let pool = try pool(3, .leastRequests)
        #expect((0..<3).map { _ in pool.choose(tried: 0, now: start) } == [0, 1, 2])
        pool.release(1)
        #expect(pool.choose(tried: 0, now: start) == 1)
        pool.release(2)
        pool.release(0)
        #expect(pool.choose(tried: 0, now: start) == 2)
        #expect(pool.choose(tried: 0, now: start) == 0)
        #expect(pool.servers.map(\.activeCount) == [1, 1, 1])
    }

    @Test("a server is tried once for each request, and then there is none")
    func triesEachOnce() throws {
        let pool = try pool(2, .leastRequests)
        #expect(pool.choose(tried: 0b01, now: start) == 1)
        #expect(pool.choose(tried: 0b10, now: start) == 0)
        #expect(pool.choose(tried: 0b11, now: start) == nil)
        #expect(try self.pool(1, .roundRobin).choose(tried: 1, now: start) == nil)
        #expect(try self.pool(0, .roundRobin).choose(tried: 0, now: start) == nil)
    }

    @Test("a server that could not be reached is passed over for a second while there are others")
    func avoidance() throws {
        let pool = try pool(2, .roundRobin)
        pool.avoid(0, now: start)
        #expect((0..<3).map { _ in pool.choose(tried: 0, now: start) } == [1, 1, 1])
        #expect(pool.choose(tried: 0b10, now: start) == 0, "better than none")
        let later = start.advanced(by: .milliseconds(1001))
        #expect(Set((0..<2).map { _ in pool.choose(tried: 0, now: later) }) == [0, 1])
    }
}
