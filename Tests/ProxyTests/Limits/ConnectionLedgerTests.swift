import Configuration
import Policy
import Testing

@testable import Proxy

@Suite("Connections are counted")
struct ConnectionLedgerTests {
    private func address(_ text: String) throws -> IPAddress {
        try #require(IPAddress(text))
    }

    @Test("up to the ceiling of the process, and each place is given up once")
    func ceiling() {
        let ledger = ConnectionLedger()
        ledger.adopt(ceiling: 2)
        #expect(ledger.enter() && ledger.enter())
        #expect(!ledger.enter() && !ledger.enter())
        #expect(ledger.count == 2)
        ledger.leave()
        #expect(ledger.enter())
        #expect(!ledger.enter())
    }

    @Test(
        "a quarter of the descriptors stays for upstreams",
        arguments: [
            (0, 16), (64, 16), (256, 128), (1024, 768), (20_000, 15_000), (1_048_576, 786_432),
            (UInt64.max, Int.max - Int.max / 4),
        ])
    func derived(descriptors: UInt64, ceiling: Int) {
        #expect(ConnectionLedger.ceiling(descriptors: descriptors) == ceiling)
    }

    @Test("a listener keeps its account over configurations, and has one of its own")
    func listeners() {
        let ledger = ConnectionLedger()
        let first = ledger.listener(.tcp(host: "127.0.0.1", port: 1))
        #expect(ledger.listener(.tcp(host: "127.0.0.1", port: 1)) === first)
        #expect(ledger.listener(.tcp(host: "127.0.0.1", port: 2)) !== first)
    }

    @Test("a network has its share of a listener; what is refused is counted nowhere")
    func networks() throws {
        let ledger = ListenerLedger()
        let (one, other) = (try address("192.0.2.1"), try address("192.0.2.2"))
        #expect(ledger.enter(limit: 3, network: (one, 2)) == nil)
        #expect(ledger.enter(limit: 3, network: (one, 2)) == nil)
        #expect(ledger.enter(limit: 3, network: (one, 2)) == .connectionsPerNetwork)
        #expect(ledger.enter(limit: 3, network: (other, 2)) == nil)
        #expect(ledger.enter(limit: 3, network: (other, 2)) == .connections)
        #expect(ledger.count == 3)
        ledger.leave(network: one)
        // The refusal above left nothing behind: it has one, so there is room for one more.
        #expect(ledger.enter(limit: 3, network: (other, 2)) == nil)
        #expect(ledger.enter(limit: 9, network: (other, 2)) == .connectionsPerNetwork)
    }

    @Test("networks without connections take no memory")
    func forgetting() throws {
        let counts = NetworkCounts()
        let addresses = try (0..<200).map { try address("192.0.2.\($0)") }
        for address in addresses { #expect(counts.add(address, limit: 1)) }
        #expect(counts.networkCount == 200)
        for address in addresses { counts.remove(address) }
        #expect(counts.networkCount == 0)
        // Once too often does no harm either.
        counts.remove(addresses[0])
        #expect(counts.add(addresses[0], limit: 1))
    }

    @Test(
        "who one client is",
        arguments: [
            ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false),
            ("2001:db8::1", "2001:db8::ffff:1:2:3", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
        ])
    func clients(first: String, second: String, isSame: Bool) throws {
        let networks = (try address(first).clientNetwork, try address(second).clientNetwork)
        #expect((networks.0 == networks.1) == isSame)
    }

    @Test("a trusted proxy and a local socket are nobody's network")
    func trusted() throws {
        var listener = Listener(name: "l", listen: .unix(path: "/l"))
        listener.trustedProxies = [try #require(IPNetwork("10.0.0.0/8"))]
        let one = try address("192.0.2.1")
        #expect(ServedListener(listener).place(of: one).network == nil)
        listener.limits.connectionsPerNetwork = 5
        let served = ServedListener(listener)
        #expect(served.place(of: one).network == one)
        #expect(served.place(of: try address("10.1.2.3")).network == nil)
        #expect(served.place(of: nil).network == nil)
    }
}
