import Configuration
import HTTP
import Policy
import Reactor
import TestKit
import Testing

@testable import Proxy

@Suite("What one loop shares")
struct LoopStateTests {
    private func configuration(_ upstreams: [Upstream]) throws -> Configuration {
        var configuration = Configuration(
            routes: try RouteTable([Route(name: "all", path: "/*", upstream: 0)]))
        configuration.upstreams = upstreams
        return configuration
    }

    private func upstream(_ name: String, port: UInt16 = 9000) -> Upstream {
        Upstream(name: name, servers: [.tcp(host: "127.0.0.1", port: port)])
    }

    @Test("a reload keeps the pools of unchanged upstreams, wherever they are in the file now")
    func keepsPools() async throws {
        try await TestLoop().run { loop in
            let first = try self.configuration([self.upstream("a"), self.upstream("b")])
            let state = LoopState(serving: first, loop: loop.loop)
            let (a, b) = (state.pools[0], state.pools[1])
            let next = try self.configuration([
                self.upstream("new"), self.upstream("b"), self.upstream("a"),
            ])
            state.adopt(ServingConfiguration(literal: next), keys: KeySnapshot(sets: []))
            #expect(state.pools.map(\.upstream.name) == ["new", "b", "a"])
            #expect(state.pools[1] === b && state.pools[2] === a)
        }
    }

    @Test("a reload gives changed upstreams new pools and closes what lay idle in the old ones")
    func closesChanged() async throws {
        try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            let state = LoopState(
                serving: try self.configuration([self.upstream("a"), self.upstream("b")]),
                loop: loop.loop)
            let kept = try await SocketPair.connect(loop: loop.loop, waiter: waiter)
            let closed = try await SocketPair.connect(loop: loop.loop, waiter: waiter)
            state.pools[0].keep(kept.near, 0, now: loop.loop.now)
            state.pools[1].keep(closed.near, 0, now: loop.loop.now)

            var changed = self.upstream("b")
            changed.idleTimeout = .seconds(1)
            let next = try self.configuration([self.upstream("a"), changed])
            state.adopt(ServingConfiguration(literal: next), keys: KeySnapshot(sets: []))
            let deadline = loop.loop.now.advanced(by: .seconds(10))
            while !closed.far.isPeerClosed, await waiter.wait(until: deadline) == .ready {}
            #expect(closed.far.isPeerClosed)
            #expect(!kept.far.isPeerClosed)
            #expect(state.pools[0].takeIdle(0, now: loop.loop.now) === kept.near)
            #expect(state.pools[1].takeIdle(0, now: loop.loop.now) == nil)
        }
    }

    @Test("O3: a shared connection opened while the configuration changes carries its request")
    func sharesThoughRetired() async throws {
        try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            var upstream = self.upstream("a")
            upstream.serverProtocol = .h2c
            let state = LoopState(serving: try self.configuration([upstream]), loop: loop.loop)
            let pair = try await SocketPair.connect(loop: loop.loop, waiter: waiter)
            // It came while the request was connecting.
            state.pools[0].retire()
            let stream = try #require(state.pools[0].share(pair.near, 0, state))
            let head = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
            _ = try head.withUnsafeBytes { bytes in
                try stream.write(bytes, UnsafeRawBufferPointer(start: nil, count: 0))
            }
            _ = state.endRound()

            let server = try HTTP2Session(
                role: .server, limits: HTTP2Limits(), now: loop.loop.now)
            var requests = 0
            server.onRequest = { _ in requests += 1 }
            let buffer = ByteBuffer(capacity: 4096)
            let deadline = loop.loop.now.advanced(by: .seconds(10))
            while requests == 0, loop.loop.now < deadline {
                if case .bytes = try pair.far.read(into: buffer) {
                    try server.receive(buffer.bytes, now: loop.loop.now)
                    buffer.removeAll()
                } else {
                    _ = await waiter.wait(until: deadline)
                }
            }
            #expect(requests == 1)
            #expect(!server.isGoingAway)
            #expect(!pair.far.isPeerClosed)

            // And when the request is over, nobody keeps the connection.
            stream.close()
            _ = state.endRound()
            while !pair.far.isPeerClosed, loop.loop.now < deadline {
                _ = await waiter.wait(until: deadline)
            }
            #expect(pair.far.isPeerClosed)
        }
    }

    @Test("an upstream whose name resolves to other addresses gets a new pool")
    func newAddresses() async throws {
        try await TestLoop().run { loop in
            let state = LoopState(
                serving: try self.configuration([self.upstream("a")]), loop: loop.loop)
            let pool = state.pools[0]
            let elsewhere = try #require(SocketAddress(literal: "127.0.0.2", port: 9000))
            let next = ServingConfiguration(
                try self.configuration([self.upstream("a")]), addresses: [[elsewhere]])
            state.adopt(next, keys: KeySnapshot(sets: []))
            #expect(state.pools[0] !== pool)
            #expect(state.pools[0].servers.map(\.address.description) == ["127.0.0.2:9000"])
        }
    }

    @Test("spare exchanges are used again, and give back what a large message made them take")
    func exchanges() async throws {
        try await TestLoop().run { loop in
            let state = LoopState(
                serving: try self.configuration([self.upstream("a")]), loop: loop.loop)
            let exchange = state.takeExchange()
            let usual = exchange.input.capacity
            exchange.input.append([UInt8](repeating: 1, count: 1 << 20))
            state.giveBack(exchange)
            #expect(state.takeExchange() === exchange)
            #expect(exchange.input.isEmpty && exchange.input.capacity == usual)
            #expect(state.takeExchange() !== exchange)
            state.giveBack(exchange)
            state.abortAll()
        }
    }
}
