import Attestation
import Configuration
import Policy
import Reactor
import Testing

@testable import Proxy

@Suite("Drained servers")
struct ServerDrainsTests {
    private let name = ListenAddress.tcp(host: "api.test", port: 80)
    private let literal = ListenAddress.tcp(host: "127.0.0.9", port: 90)
    private let other = ListenAddress.tcp(host: "other.test", port: 80)

    private func upstream(_ servers: [ListenAddress]) -> Upstream {
        Upstream(name: "api", servers: servers)
    }

    private func configuration(_ servers: [ListenAddress]) throws -> Configuration {
        var configuration = Configuration(
            routes: try RouteTable([Route(name: "all", path: "/*", upstream: 0)]))
        configuration.upstreams = [upstream(servers)]
        return configuration
    }

    /// What names mean, by the last numbers of addresses in 127.0.0.0/24.
    private func book(_ numbers: [ListenAddress: [Int]]) -> (ListenAddress) -> [SocketAddress] {
        { server in
            guard case .tcp(_, let port) = server else { return [] }
            return (numbers[server] ?? []).compactMap {
                SocketAddress(literal: "127.0.0.\($0)", port: port)
            }
        }
    }

    @Test("a server is named as the configuration writes it, or by an address that it has")
    func subjects() {
        let upstream = upstream([name, literal])
        let book = book([name: [1, 2], literal: [9]])
        let whole = ServerDrains.subject("api.test:80", of: upstream, addresses: book)
        #expect(whole?.labels == ["127.0.0.1:80", "127.0.0.2:80"] && whole?.address == nil)
        let one = ServerDrains.subject("127.0.0.2:80", of: upstream, addresses: book)
        #expect(one?.server == name && one?.labels == ["127.0.0.2:80"])
        #expect(ServerDrains.subject("127.0.0.9:90", of: upstream, addresses: book)?.address == nil)
        for text in ["127.0.0.3:80", "api.test", "api.test:81", "", "API.test:80"] {
            #expect(ServerDrains.subject(text, of: upstream, addresses: book) == nil)
        }
    }

    @Test("an address of a drained name comes back alone, and goes again")
    func parts() throws {
        var drains = ServerDrains()
        let upstream = upstream([name])
        let book = book([name: [1, 2]])
        let whole = try #require(
            ServerDrains.subject("api.test:80", of: upstream, addresses: book))
        let one = try #require(
            ServerDrains.subject("127.0.0.1:80", of: upstream, addresses: book))
        #expect(drains.drain(whole, of: "api", by: "me", since: 5) == true)
        #expect(drains.drain(whole, of: "api", by: "me", since: 6) == false)
        #expect(drains.drain(one, of: "api", by: "me", since: 6) == false)
        #expect(drains.undrain(one, of: "api") == true)
        #expect(!drains.isDraining("127.0.0.1:80", of: "api"))
        #expect(drains.isDraining("127.0.0.2:80", of: "api"))
        #expect(!drains.isDraining("127.0.0.2:80", of: "other"))
        #expect(drains.undrain(one, of: "api") == false)
        #expect(drains.drain(one, of: "api", by: "me", since: 7) == true)
        #expect(drains.undrain(whole, of: "api") == true)
        #expect(drains.all.isEmpty)
        #expect(drains.undrain(whole, of: "api") == false)
    }

    @Test("a drained name takes its new addresses along, and lets go of old ones one step later")
    func addresses() throws {
        var drains = ServerDrains()
        let whole = try #require(
            ServerDrains.subject("api.test:80", of: upstream([name]), addresses: book([name: [1]])))
        _ = drains.drain(whole, of: "api", by: "me", since: 5)
        drains.update(addresses: book([name: [2, 3]]))
        for number in 1...3 { #expect(drains.isDraining("127.0.0.\(number):80", of: "api")) }
        drains.update(addresses: book([name: [2, 3]]))
        #expect(!drains.isDraining("127.0.0.1:80", of: "api"))
        #expect(drains.snapshot.isDraining("127.0.0.3:80", of: "api"))
        drains.update(addresses: book([:]))
        drains.update(addresses: book([:]))
        #expect(drains.all.count == 1 && !drains.isDraining("127.0.0.3:80", of: "api"))
    }

    @Test("what leaves the configuration is forgotten, and each change replaces the one before")
    func forgetting() throws {
        var drains = ServerDrains()
        let upstream = upstream([name, literal, other])
        let book = book([name: [1], literal: [9], other: [1]])
        for text in ["api.test:80", "127.0.0.9:90"] {
            let subject = try #require(
                ServerDrains.subject(text, of: upstream, addresses: book))
            let before = drains.snapshot.change
            #expect(drains.drain(subject, of: "api", by: "me", since: 5) == true)
            #expect(drains.snapshot.change > before)
        }
        #expect(drains.keepOnly(try configuration([name, literal])).isEmpty)
        let forgotten = drains.keepOnly(try configuration([literal, other]))
        #expect(forgotten.map(\.server) == [name])
        #expect(!drains.snapshot.isDraining("127.0.0.1:80", of: "api"))
        #expect(drains.snapshot.isDraining("127.0.0.9:90", of: "api"))
    }
}

@Suite("Pools with drained servers")
struct DrainedPoolTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    private func pool(_ count: Int, _ adjust: (inout Upstream) -> Void = { _ in }) throws
        -> UpstreamPool
    {
        var upstream = Upstream(
            name: "api",
            servers: (0..<count).map { .tcp(host: "127.0.0.1", port: UInt16(9000 + $0)) })
        adjust(&upstream)
        let addresses = try (0..<count).map {
            try #require(SocketAddress(literal: "127.0.0.1", port: UInt16(9000 + $0)))
        }
        return UpstreamPool(upstream, addresses: addresses)
    }

    private func drains(_ servers: Int..., change: UInt64 = 1) -> DrainSnapshot {
        DrainSnapshot(
            change: change,
            servers: Set(servers.map { .init(upstream: "api", label: "127.0.0.1:\(9000 + $0)") }))
    }

    @Test(
        "a drained server is never chosen, in panic neither, and a hashed key finds another one",
        arguments: Upstream.Balance.allCases)
    func never(_ balance: Upstream.Balance) throws {
        let pool = try pool(3) { upstream in
            upstream.balance = balance
            upstream.panicThreshold = 100
        }
        pool.adopt(drains(1), now: start)
        for key in 0..<50 {
            let chosen = pool.choose(
                tried: 0, now: start, key: balance == .hash ? UInt64(key) &* 0x9E37_79B9 : nil)
            #expect(chosen == 0 || chosen == 2)
        }
        #expect(!pool.isPanicking, "who took it away knew what is left")
        pool.adopt(drains(0, 1, 2), now: start)
        #expect(pool.choose(tried: 0, now: start) == nil)
        #expect(!pool.isFull)
    }

    @Test("the only server of an upstream can be drained")
    func only() throws {
        let pool = try pool(1)
        pool.adopt(drains(0), now: start)
        #expect(pool.choose(tried: 0, now: start) == nil)
        pool.adopt(drains(change: 2), now: start)
        #expect(pool.choose(tried: 0, now: start) == 0)
    }

    @Test("panic and ejection count the servers that are left, and no drained one is ejected")
    func counting() throws {
        let pool = try pool(4) { $0.panicThreshold = 50 }
        pool.adopt(drains(0, 1), now: start)
        // One of the two that are left may go, as one of two may.
        #expect(pool.eject(0, now: start) == nil)
        #expect(pool.eject(2, now: start) != nil)
        #expect(pool.choose(tried: 0, now: start) == 3)
        #expect(!pool.isPanicking)
        #expect(pool.eject(3, now: start) == nil, "the last one stays")
    }

    @Test("a server that comes back gets its part little by little")
    func slowStart() throws {
        let pool = try pool(2) { $0.slowStart = .seconds(10) }
        pool.adopt(drains(0), now: start)
        pool.adopt(drains(change: 2), now: start)
        let counts = (0..<400).reduce(into: [0, 0]) { counts, _ in
            if let index = pool.choose(tried: 0, now: start) {
                counts[index] += 1
                pool.release(index)
            }
        }
        #expect(counts[0] > 0 && counts[0] < 130, "\(counts)")
    }
}
