import Reactor
import Testing

/// An actor that lives on a loop of its own thread, as the proxy's workers do.
private actor Resident {
    nonisolated let loop: EventLoop

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init() throws {
        loop = try EventLoop()
        let loop = loop
        Thread.start(named: "test loop") { loop.run() }
    }

    deinit {
        loop.stop()
    }

    func waitReason(deadline: Duration) async -> WakeReason {
        let waiter = Waiter(loop: loop)
        let reason = await waiter.wait(until: loop.now.advanced(by: deadline))
        waiter.invalidate()
        return reason
    }

    func keepsAnEarlyWakeUp() async -> WakeReason {
        let waiter = Waiter(loop: loop)
        waiter.wake()
        return await waiter.wait()
    }

    func wakeAfterDeadline() async -> WakeReason {
        let waiter = Waiter(loop: loop)
        waiter.wake()
        return await waiter.wait(until: loop.now)
    }

    func echoOnce(_ listening: ListeningDescriptor) async throws -> String {
        let waiter = Waiter(loop: loop)
        let listener = try ListeningSocket(listening, loop: loop, waiter: waiter)
        while true {
            if let (socket, peer) = try listener.accept() {
                let reader = Waiter(loop: loop)
                socket.waiter = reader
                let buffer = ByteBuffer(capacity: 64)
                while true {
                    switch try socket.read(into: buffer) {
                    case .wouldBlock: _ = await reader.wait()
                    case .bytes: buffer.reserve(64)
                    case .endOfStream:
                        _ = try buffer.withUnsafeBytes { bytes throws(Errno) in
                            try socket.write(bytes)
                        }
                        return peer.host
                    }
                }
            }
            _ = await waiter.wait()
        }
    }

    func exchange(_ text: String, with address: SocketAddress) async throws -> String {
        let waiter = Waiter(loop: loop)
        let socket = try Socket.connect(to: address, loop: loop)
        socket.waiter = waiter
        while socket.connectResult() == nil { _ = await waiter.wait() }
        let buffer = ByteBuffer(capacity: 64)
        buffer.append(text)
        _ = try buffer.withUnsafeBytes { bytes throws(Errno) in try socket.write(bytes) }
        socket.finishWriting()
        buffer.removeAll()
        while true {
            switch try socket.read(into: buffer) {
            case .wouldBlock: _ = await waiter.wait()
            case .bytes: buffer.reserve(64)
            case .endOfStream:
                return buffer.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            }
        }
    }
}

@Suite("Event loop")
struct EventLoopTests {
    @Test("a wait ends at its deadline when nothing wakes it")
    func deadline() async throws {
        let resident = try Resident()
        let before = MonotonicInstant.now
        #expect(await resident.waitReason(deadline: .milliseconds(80)) == .timedOut)
        let waited = MonotonicInstant.now.microseconds(since: before)
        #expect(waited >= 80_000)
    }

    @Test("a wake-up that comes before the wait is kept")
    func earlyWake() async throws {
        let resident = try Resident()
        #expect(await resident.keepsAnEarlyWakeUp() == .ready)
    }

    @Test("W9: a deadline that is over ends a wait, however often its task is woken")
    func deadlineBeforeWake() async throws {
        let resident = try Resident()
        #expect(await resident.wakeAfterDeadline() == .timedOut)
    }

    @Test(
        "two loops exchange bytes over a socket, whatever the family",
        arguments: ["127.0.0.1", "::1"])
    func echo(host: String) async throws {
        let address = try #require(SocketAddress(literal: host, port: 0))
        let listening = try ListeningDescriptor(address, isShared: false)
        let server = try Resident()
        let client = try Resident()
        async let peer = server.echoOnce(listening)
        let text = String(repeating: "portcullis ", count: 1000)
        #expect(try await client.exchange(text, with: listening.address) == text)
        #expect(try await peer == host)
    }

    @Test("a local socket carries bytes and its path is removed afterwards")
    func localSocket() async throws {
        let path = "/tmp/portcullis-test-\(UInt64.random(in: 0...UInt64.max)).sock"
        let address = try #require(SocketAddress(unixPath: path))
        do {
            let listening = try ListeningDescriptor(address, unixPath: path, isShared: false)
            let server = try Resident()
            let client = try Resident()
            async let peer = server.echoOnce(listening)
            #expect(try await client.exchange("hello", with: address) == "hello")
            #expect(try await peer == "unix")
        }
        #expect(!Syscalls.isWritable(path))
    }
}
