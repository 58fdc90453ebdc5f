import Testing

@testable import Reactor

@Suite("How long names hold")
struct NameLifetimeTests {
    private static let question: [UInt8] =
        [3] + Array("api".utf8) + [4] + Array("test".utf8) + [0, 0, 1, 0, 1]

    /// A response with one question, and these records as its answers.
    private func message(_ records: [UInt8]..., count: UInt8? = nil) -> [UInt8] {
        [0, 7, 0x81, 0x80, 0, 1, 0, count ?? UInt8(records.count), 0, 0, 0, 0] + Self.question
            + records.flatMap(\.self)
    }

    private func record(
        _ type: UInt8, ttl: [UInt8], name: [UInt8] = [0xC0, 12], data: [UInt8] = [127, 0, 0, 1]
    ) -> [UInt8] {
        name + [0, type, 0, 1] + ttl + [0, UInt8(data.count)] + data
    }

    @Test("The shortest life of addresses and of the aliases that lead to them counts")
    func takesTheShortest() {
        let alias = record(5, ttl: [0, 0, 1, 44], data: [1, 98, 0xC0, 12])
        let address = record(1, ttl: [0, 0, 0, 60], name: [1, 98, 0xC0, 12])
        let address6 = record(28, ttl: [0, 0, 2, 0], data: Array(repeating: 0, count: 16))
        #expect(NameLifetime.shortest(in: message(alias, address)) == .seconds(60))
        #expect(NameLifetime.shortest(in: message(alias, address6)) == .seconds(300))
        #expect(NameLifetime.shortest(in: message(address6)) == .seconds(512))
    }

    @Test("Other records, signatures above all, do not count")
    func passesOthers() {
        let signature = record(46, ttl: [0, 0, 0, 1])
        let address = record(1, ttl: [0, 1, 0, 0])
        #expect(NameLifetime.shortest(in: message(signature, address)) == .seconds(65536))
        #expect(NameLifetime.shortest(in: message(signature)) == nil)
        #expect(NameLifetime.shortest(in: message()) == nil)
    }

    @Test("RFC 2181, section 8: a life with the highest bit is none")
    func readsTheHighestBit() {
        #expect(NameLifetime.shortest(in: message(record(1, ttl: [128, 0, 0, 1]))) == .zero)
        let longest = message(record(1, ttl: [127, 255, 255, 255]))
        #expect(NameLifetime.shortest(in: longest) == .seconds(2_147_483_647))
    }

    @Test("A message that ends anywhere too early, or says more than it has, tells nothing")
    func refusesMalformed() {
        let whole = message(record(1, ttl: [0, 0, 0, 60]))
        for count in 0..<whole.count {
            #expect(NameLifetime.shortest(in: Array(whole[..<count])) == nil, "\(count)")
        }
        #expect(NameLifetime.shortest(in: message(record(1, ttl: [0, 0, 0, 60]), count: 2)) == nil)
        // Neither a label nor a pointer.
        let reserved = message(record(1, ttl: [0, 0, 0, 60], name: [0x80, 12]))
        #expect(NameLifetime.shortest(in: reserved) == nil)
        #expect(NameLifetime.shortest(in: Array(repeating: 0xFF, count: 4096)) == nil)
    }

    @Test("No name server is asked about this machine")
    func knowsLocalhost() {
        #expect(NameLifetime.askBlocking("localhost") == nil)
        #expect(NameLifetime.askBlocking("app.localhost") == nil)
    }
}
