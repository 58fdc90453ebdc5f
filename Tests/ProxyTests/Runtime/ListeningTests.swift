import Configuration
import Glibc
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

    @Test(
        "no queue is nobody's, and no loop is without one",
        arguments: [(1, 1), (1, 4), (2, 4), (3, 3), (5, 2), (4, 1)])
    func spread(descriptors: Int, loops: Int) throws {
        var listening = Listening()
        let opened = try listening.descriptors(
            for: .tcp(host: "127.0.0.1", port: 0), count: descriptors)
        let shares = Listening.spread(opened, over: loops).map { $0.map(\.number) }
        #expect(shares.count == loops)
        #expect(Set(shares.joined()) == Set(opened.map(\.number)))
        for share in shares { #expect(Set(share).count == share.count && !share.isEmpty) }
        // Those that are left over are everybody's.
        #expect(shares.allSatisfy { $0.count == 1 + max(0, descriptors - loops) })
    }

    @Test("O11: what was handed over is served, and becomes this process's own in the end")
    func handedOver() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "own.sock")
        let tcp = ListenAddress.tcp(host: "127.0.0.1", port: 0)
        var before = Listening()
        let sockets = try before.descriptors(for: tcp, count: 2)
        let port = try port(of: sockets[0])
        _ = try before.descriptors(for: .unix(path: path), count: 2)
        #expect(before.passed.count == 3)

        // The same process plays both: a descriptor's copy is what the next one has.
        let copies = try before.passed.map {
            PassedSocket(number: try copy(of: $0.number), origin: $0.origin)
        }
        let inherited = try InheritedSockets(
            handedOver: copies, for: try configuration(unix: path, port: port))
        var after = Listening(inherited: inherited)
        #expect(try after.descriptors(for: tcp, count: 4).count == 2)
        #expect(try after.descriptors(for: .unix(path: path), count: 4).count == 1)
        before.disown([.unix(path: path)])
        before.close(except: [])
        #expect(SocketAddress(unixPath: path)?.isAbandonedSocket == false)

        // More loops than sockets: the others are opened on the same port.
        #expect(after.settle(count: 4).isEmpty)
        let settled = try #require(after.known(tcp))
        #expect(settled.count == 4)
        #expect(Set(try settled.map(self.port)) == [port])
        after.close(except: [tcp])
        #expect(refusal(of: .unix(path: path)) == nil)
    }

    @Test("O11: a process that does not take over leaves the socket's file alone")
    func givenUp() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "own.sock")
        var before = Listening()
        _ = try before.descriptors(for: .unix(path: path), count: 1)
        let copies = try before.passed.map {
            PassedSocket(number: try copy(of: $0.number), origin: $0.origin)
        }
        do {
            let inherited = try InheritedSockets(
                handedOver: copies, for: try configuration(unix: path, port: 1))
            var after = Listening(inherited: inherited)
            _ = try after.descriptors(for: .unix(path: path), count: 1)
        }
        #expect(SocketAddress(unixPath: path)?.isAbandonedSocket == false)
        before.close(except: [])
        #expect((try? Syscalls.status(at: path)) == nil)
    }

    private func copy(of descriptor: Int32) throws -> Int32 {
        let copy = dup(descriptor)
        return try #require(copy >= 0 ? copy : nil)
    }

    private func configuration(unix path: String, port: UInt16) throws -> Configuration {
        let text = OneRouteFile.text(
            listeners: """
                [[listener]]
                listen = "127.0.0.1:\(port)"
                [[listener]]
                listen = "unix:\(path)"
                """)
        return try #require(
            Configuration.load(text: text, fileName: "t.conf", surroundings: .empty).configuration)
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
