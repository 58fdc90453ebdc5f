import Reactor
import TestKit
import Testing

@Suite("Streams over sockets")
struct SocketStreamTests {
    private static let patience = Duration.seconds(20)

    /// Accepts one connection, sends back the first `count` bytes, and closes.
    ///
    /// - Returns: who connected.
    private func echo(_ listening: ListeningDescriptor, _ count: Int) async throws -> String {
        try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            defer { waiter.invalidate() }
            let deadline = loop.loop.now.advanced(by: Self.patience)
            let listener = try ListeningSocket(listening, loop: loop.loop, waiter: waiter)
            var accepted = try listener.accept()
            while accepted == nil, await waiter.wait(until: deadline) == .ready {
                accepted = try listener.accept()
            }
            guard let accepted else { throw Errno.invalidArgument }
            let stream = SocketStream(accepted.socket, loop: loop.loop)
            while stream.received.count < count, await stream.receive(until: deadline) {}
            let isSent = await stream.send(stream.received, until: deadline)
            #expect(isSent)
            await stream.linger(limit: 1 << 20, until: deadline)
            stream.close()
            return accepted.peer.host
        }
    }

    /// Sends `text` and returns what comes back.
    private func exchange(_ text: String, with address: SocketAddress) async throws -> String {
        try await TestLoop().run { loop in
            let deadline = loop.loop.now.advanced(by: Self.patience)
            let connected = await SocketStream.connect(
                to: address, loop: loop.loop, until: deadline)
            guard let stream = connected else { throw Errno.invalidArgument }
            let bytes = ByteBuffer(capacity: text.utf8.count)
            bytes.append(text)
            let isSent = await stream.send(bytes, until: deadline)
            #expect(isSent)
            while await stream.receive(until: deadline) {}
            stream.close()
            return stream.received.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
    }

    @Test(
        "two loops exchange bytes, whatever the family and more than a socket holds",
        arguments: ["127.0.0.1", "::1"])
    func echo(host: String) async throws {
        let address = try #require(SocketAddress(literal: host, port: 0))
        let listening = try ListeningDescriptor(address, isShared: false)
        let text = String(repeating: "portcullis ", count: 100_000)
        async let peer = echo(listening, text.utf8.count)
        #expect(try await exchange(text, with: listening.address) == text)
        #expect(try await peer == host)
    }

    @Test("a local socket carries bytes and its path is removed afterwards")
    func localSocket() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "echo.sock")
        let address = try #require(SocketAddress(unixPath: path))
        do {
            let listening = try ListeningDescriptor(address, unixPath: path, isShared: false)
            async let peer = echo(listening, 5)
            #expect(try await exchange("hello", with: address) == "hello")
            #expect(try await peer == "unix")
        }
        #expect(try folder.names() == [])
    }

    @Test("receiving ends at the deadline, although bytes come all the time")
    func slowPeer() async throws {
        try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            let pair = try await SocketPair.connect(loop: loop.loop, waiter: waiter)
            let stream = SocketStream(pair.far, loop: loop.loop)
            let deadline = loop.loop.now.advanced(by: .milliseconds(100))
            let byte = ByteBuffer(capacity: 1)
            var rounds = 0
            repeat {
                byte.append(UInt8(ascii: "x"))
                _ = try byte.withUnsafeBytes { try pair.near.write($0) }
                byte.removeAll()
                rounds += 1
            } while await stream.receive(until: deadline) && rounds < 1_000_000
            #expect(rounds < 1_000_000)
            #expect(MonotonicInstant.now >= deadline)
            stream.close()
        }
    }

    @Test("who stops receiving can still send")
    func endReceiving() async throws {
        try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            let pair = try await SocketPair.connect(loop: loop.loop, waiter: waiter)
            let stream = SocketStream(pair.far, loop: loop.loop)
            let deadline = loop.loop.now.advanced(by: Self.patience)
            stream.endReceiving()
            let hasReceived = await stream.receive(until: deadline)
            #expect(!hasReceived)
            let words = ByteBuffer(capacity: 8)
            words.append("goodbye")
            let isSent = await stream.send(words, until: deadline)
            #expect(isSent)
            stream.close()
            let heard = ByteBuffer(capacity: 64)
            while heard.isEmpty, case .wouldBlock = try pair.near.read(into: heard) {
                _ = await waiter.wait(until: deadline)
            }
            #expect(heard.withUnsafeBytes { $0.elementsEqual("goodbye".utf8) })
        }
    }
}
