import Configuration
import Reactor
import TestKit
import Testing

@testable import Proxy

@Suite("Listening")
struct ListeningTests {
    /// What opening an address says that is wrong with it; nil when it opens.
    private func refusal(of address: ListenAddress) -> String? {
        var listening = Listening()
        do throws(ListenError) {
            _ = try listening.descriptors(for: address, count: 1)
            return nil
        } catch {
            return error.description
        }
    }

    private func port(of descriptor: ListeningDescriptor) throws -> UInt16 {
        try #require(descriptor.address.port)
    }

    @Test("an address is opened once for every loop, on one port, and stays open")
    func opens() throws {
        var listening = Listening()
        let address = ListenAddress.tcp(host: "127.0.0.1", port: 0)
        let first = try listening.descriptors(for: address, count: 3)
        #expect(Set(try first.map(port)).count == 1)
        #expect(Set(first.map(ObjectIdentifier.init)).count == 3)
        let again = try listening.descriptors(for: address, count: 3)
        #expect(again.map(ObjectIdentifier.init) == first.map(ObjectIdentifier.init))
        #expect(listening.isOpen(address) && listening.addresses == [address])
        listening.close(except: [])
        #expect(!listening.isOpen(address))
    }

    @Test("a port that another process listens on is not shared silently")
    func inUse() throws {
        var other = Listening()
        let any = ListenAddress.tcp(host: "127.0.0.1", port: 0)
        let port = try port(of: other.descriptors(for: any, count: 2)[0])
        #expect(
            refusal(of: .tcp(host: "127.0.0.1", port: port))
                == "cannot listen on 127.0.0.1:\(port): the address is in use by another process; "
                + "stop it or choose another one")
    }

    @Test(
        "what is no address of this machine is said to be none",
        arguments: [
            ("localhost", "\"localhost\" is no IP address of this machine"),
            ("192.0.2.1", "no interface of this machine has that address"),
        ])
    func noAddress(host: String, reason: String) {
        #expect(
            refusal(of: .tcp(host: host, port: 8080)) == "cannot listen on \(host):8080: \(reason)")
    }

    @Test("a socket's path has to fit, and its folder has to be there")
    func path() throws {
        let long = "/tmp/" + String(repeating: "p", count: 103)
        #expect(
            refusal(of: .unix(path: long))?.hasSuffix("the path is longer than 107 bytes") == true)
        let missing = "/nonexistent/portcullis.sock"
        #expect(refusal(of: .unix(path: missing))?.hasPrefix("cannot listen on unix:") == true)
    }

    @Test("a socket that a dead process left behind is taken over; one in use is not")
    func abandoned() async throws {
        let folder = try TemporaryFolder()
        let address = ListenAddress.unix(path: folder.path(of: "listen.sock"))
        let bound = try #require(SocketAddress(unixPath: folder.path(of: "listen.sock")))
        // Without a path to remove at its end, the file outlives the descriptor.
        do { _ = try ListeningDescriptor(bound, isShared: false) }
        var listening = Listening()
        _ = try listening.descriptors(for: address, count: 2)
        #expect(refusal(of: address)?.contains("in use by another process") == true)
    }
}
