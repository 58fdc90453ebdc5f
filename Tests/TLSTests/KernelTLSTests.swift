import Reactor
import Synchronization
import TLS
import TestKit
import Testing

/// A kernel that takes keys, or says why not, and keeps what it is told.
private final class SealingKernel: KernelStandIn {
    enum Event: Equatable {
        case sent, attached, started
        case record(type: UInt8, first: UInt8)
    }

    struct State {
        var events: [Event] = []
        var refusal: (call: String, Errno)?
        /// Records are not taken now.
        var isFull = false
        var position = 0
        var sequence = 0
        /// The socket whose keys it has.
        var sealed: Int32?
        /// Content since then, bytes.
        var content = 0
    }

    let state = Mutex(State())

    var events: [Event] { state.withLock(\.events) }

    func answer(_ call: SystemCall) -> SystemCallAnswer? {
        state.withLock { state in
            if let (name, error) = state.refusal, name == call.name { return .failure(error) }
            switch call {
            case .send(let descriptor, let first, let second):
                state.events.append(.sent)
                if descriptor == state.sealed { state.content += first.count + second.count }
            case .attachTLS:
                state.events.append(.attached)
                return .value(0)
            case .startTLS(let descriptor):
                state.sealed = descriptor
                state.events.append(.started)
                return .value(0)
            case .sendRecord(_, let type, let bytes):
                if state.isFull { return .failure(.wouldBlock) }
                state.events.append(.record(type: type, first: bytes.first ?? 0))
                state.content += bytes.count
                return .value(bytes.count)
            case .streamPosition: return .value(state.position)
            case .nextRecord: return .value(state.sequence)
            default: break
            }
            return nil
        }
    }
}

@Suite("Kernel TLS", .timeLimit(.minutes(1)))
struct KernelTLSTests {
    let folder: TemporaryFolder
    let mint: CertificateMint
    private let kernel = SealingKernel()

    init() throws {
        folder = try TemporaryFolder()
        mint = try CertificateMint(in: folder)
    }

    /// Both ends after the handshake, on one loop.
    private func withPair(
        usesKernel: Bool = true,
        _ body:
            @Sendable (_ near: TLSTransport, _ far: TLSTransport, _ plain: Socket, Waiter)
            async throws -> Void
    ) async throws {
        var settings = TLSServerSettings(
            certificates: [CertificateFiles(try mint.issue(["DNS:localhost"]))])
        settings.usesKernel = usesKernel
        let server = try TLSServer(settings, tickets: TicketKeys())
        let context = try TLSContext.client(trust: .certificates(inFile: mint.file))
        let kernel = kernel
        let resident = try StandIn.use(kernel) { try TestLoop() }
        try await TLSPair.with(server, context, on: resident) { pair, waiter in
            try await body(pair.near, pair.far, pair.near.socket, waiter)
        }
    }

    private static func read(_ transport: any Transport, _ waiter: Waiter) async throws -> String {
        let buffer = ByteBuffer(capacity: 1024)
        while buffer.isEmpty {
            if try transport.read(into: buffer) == .wouldBlock { _ = await waiter.wait() }
        }
        return buffer.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    private static func write(_ text: StaticString, to transport: any Transport) throws
        -> TransferResult
    {
        let bytes = UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        return try transport.write(bytes)
    }

    @Test("a listener that does not ask for it asks the kernel nothing")
    func off() async throws {
        try await withPair(usesKernel: false) { near, far, _, waiter in
            #expect(!far.isSealedByKernel && far.isHandedOver)
            let result = try Self.write("hello", to: far)
            #expect(result == .bytes(5))
            #expect(try await Self.read(near, waiter) == "hello")
        }
        #expect(!kernel.events.contains(.attached))
    }

    @Test(
        "a kernel that refuses leaves the connection to OpenSSL",
        arguments: ["tcp_ulp", "tls_tx", "tcp_info"])
    func refused(call: String) async throws {
        kernel.state.withLock { $0.refusal = (call, .noSuchFile) }
        try await withPair { near, far, _, waiter in
            #expect(!far.isSealedByKernel && far.isHandedOver)
            let result = try Self.write("hello", to: far)
            #expect(result == .bytes(5))
            #expect(try await Self.read(near, waiter) == "hello")
            far.close()
            while !near.isReadable { _ = await waiter.wait() }
            #expect(try near.read(into: ByteBuffer(capacity: 8)) == .endOfStream)
        }
    }

    @Test("what OpenSSL sealed is sent before the kernel gets the keys; then plain text is written")
    func handedOver() async throws {
        let kernel = kernel
        try await withPair { near, far, plain, waiter in
            #expect(far.isSealedByKernel)
            let began = try #require(kernel.events.firstIndex(of: .started))
            #expect(kernel.events[..<began].contains(.sent))
            // The ticket, as a handshake message.
            #expect(
                kernel.events[began...].filter { $0 == .record(type: 22, first: 4) }.count == 1)
            let result = try Self.write("hello", to: far)
            #expect(result == .bytes(5))
            #expect(try await Self.read(plain, waiter) == "hello")
        }
    }

    @Test("close_notify is a record of its own, waits for room, and content waits behind it")
    func alerts() async throws {
        let kernel = kernel
        try await withPair { _, far, _, _ in
            kernel.state.withLock { $0.isFull = true }
            far.finishWriting()
            #expect(!kernel.events.contains(.record(type: 21, first: 1)))
            #expect(!far.isHandedOver)
            let result = try Self.write("x", to: far)
            #expect(result == .wouldBlock)
            kernel.state.withLock { $0.isFull = false }
        }
    }

    @Test("closing waits until TCP has every record with what the kernel adds to it")
    func delivery() async throws {
        let kernel = kernel
        try await withPair { _, far, _, _ in
            _ = try Self.write("hello", to: far)
            // A ticket and five bytes in two records of TLS 1.3, each 22 bytes longer.
            kernel.state.withLock {
                $0.sequence = 2
                $0.position = $0.content + 2 * 22
            }
            #expect(far.isHandedOver)
            // The end of the stream was sent too.
            kernel.state.withLock { $0.position += 1 }
            #expect(far.isHandedOver)
            kernel.state.withLock { $0.position -= 2 }
            #expect(!far.isHandedOver)
            kernel.state.withLock { $0.refusal = ("tcp_info", .wouldBlock) }
            #expect(!far.isHandedOver)
            // Whatever else the kernel says, waiting would not help.
            kernel.state.withLock { $0.refusal = ("tcp_info", .invalidArgument) }
            #expect(far.isHandedOver)
        }
    }

    @Test("the kernel's error ends the connection")
    func broken() async throws {
        let kernel = kernel
        try await withPair { _, far, _, _ in
            kernel.state.withLock { $0.refusal = ("send", .connectionReset) }
            #expect(throws: Errno.connectionReset) { try Self.write("hello", to: far) }
            #expect(far.isBroken && far.isHandedOver)
            kernel.state.withLock { $0.refusal = nil }
        }
    }
}
