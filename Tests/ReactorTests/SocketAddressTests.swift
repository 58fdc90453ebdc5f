import Reactor
import Testing

@Suite("Socket addresses")
struct SocketAddressTests {
    @Test("two addresses are equal when they name the same place")
    func equality() throws {
        let address = try #require(SocketAddress(literal: "127.0.0.1", port: 80))
        #expect(address == SocketAddress(literal: "127.0.0.1", port: 80))
        #expect(address != SocketAddress(literal: "127.0.0.1", port: 81))
        #expect(address != SocketAddress(literal: "127.0.0.2", port: 80))
        // Bound separately, and a different queue.
        #expect(address != SocketAddress(literal: "::ffff:127.0.0.1", port: 80))
        #expect(SocketAddress(unixPath: "/a") == SocketAddress(unixPath: "/a"))
        #expect(SocketAddress(unixPath: "/a") != SocketAddress(unixPath: "/ab"))
        #expect(SocketAddress(unixPath: "a") != SocketAddress(abstractName: "a"))
        #expect(SocketAddress(abstractName: "a") != SocketAddress(abstractName: "a\0"))
    }

    @Test("a path is a file's; an abstract name is none")
    func path() throws {
        #expect(try #require(SocketAddress(unixPath: "/run/x")).path == "/run/x")
        #expect(try #require(SocketAddress(abstractName: "x")).path == nil)
        #expect(try #require(SocketAddress(literal: "::1", port: 1)).path == nil)
    }

    @Test("a name that does not fit is none")
    func tooLong() {
        #expect(SocketAddress(abstractName: String(repeating: "x", count: 107)) != nil)
        #expect(SocketAddress(abstractName: String(repeating: "x", count: 108)) == nil)
        #expect(SocketAddress(abstractName: "") == nil)
    }
}
