public import Reactor
public import TLS

/// A server on loopback that answers what the test says, well-formed or not, and remembers what
/// it was asked.
public actor ScriptedServer {
    /// What follows an answer.
    public enum Ending: Sendable {
        /// The connection is closed in good order.
        case close
        /// The connection is cut: TLS says no close_notify.
        case cut
        /// Nothing more happens until the client leaves.
        case silence
        /// The connection goes on with TLS and another request, as behind a CONNECT.
        case startTLS(TLSContext)
        /// The connection carries another request.
        case another
    }

    /// One answer of the script.
    public struct Answer: Sendable {
        public var bytes: [UInt8]
        public var ending: Ending
        /// How long the server thinks first.
        public var delay: Duration

        public init(
            _ text: String, then ending: Ending = .close, after delay: Duration = .zero
        ) {
            bytes = Array(text.utf8)
            self.ending = ending
            self.delay = delay
        }

        /// A complete 200.
        public static func ok(_ body: String, fields: String = "") -> Answer {
            Answer(
                "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\(fields)\r\n\(body)")
        }
    }

    /// Gets a request (its head and, with Content-Length, its content) and how many came before it; nil closes without an answer.
    public typealias Script = @Sendable (_ request: String, _ index: Int) -> Answer?

    public nonisolated let loop: EventLoop
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Where it listens.
    public nonisolated let address: SocketAddress
    /// All requests: heads, with their contents behind them.
    public private(set) var requests: [String] = []
    /// How many connections came.
    public private(set) var connectionCount = 0
    /// How many of them are open.
    public private(set) var openCount = 0

    private let script: Script
    private let context: TLSContext?
    private let listenWaiter: Waiter
    private var listener: ListeningSocket?

    /// Starts a server.
    ///
    /// - Parameter context: Speaks TLS from the first byte.
    public static func start(
        _ context: TLSContext? = nil, address: SocketAddress? = nil, script: @escaping Script
    ) async throws -> ScriptedServer {
        guard let any = address ?? SocketAddress(literal: "127.0.0.1", port: 0) else {
            throw Errno.invalidArgument
        }
        let listening = try ListeningDescriptor(any, isShared: false)
        let server = try ScriptedServer(listening.address, context, script)
        try await server.listen(listening)
        return server
    }

    private init(
        _ address: SocketAddress, _ context: TLSContext?, _ script: @escaping Script
    ) throws {
        self.address = address
        self.context = context
        self.script = script
        let loop = try EventLoop()
        self.loop = loop
        listenWaiter = Waiter(loop: loop)
        Thread.start(named: "test server") { loop.run() }
    }

    deinit {
        loop.stop()
    }

    /// The port that it listens on.
    public nonisolated var port: UInt16 { address.port ?? 0 }

    /// Returns when so many requests have come.
    public func received(atLeast count: Int) async {
        while requests.count < count {
            let waiter = Waiter(loop: loop)
            _ = await waiter.wait(until: loop.now.advanced(by: .milliseconds(20)))
            waiter.invalidate()
        }
    }

    private func listen(_ listening: ListeningDescriptor) throws {
        listener = try ListeningSocket(listening, loop: loop, waiter: listenWaiter)
        Task { [weak self] in
            while let self { await self.acceptSome() }
        }
    }

    /// Returns from time to time, so that the server ends with its test.
    private func acceptSome() async {
        while let (socket, _) = try? listener?.accept() {
            Task { await self.serve(socket) }
        }
        _ = await listenWaiter.wait(until: loop.now.advanced(by: .milliseconds(300)))
    }

    private func serve(_ socket: Socket) async {
        let waiter = Waiter(loop: loop)
        socket.waiter = waiter
        let connection = ScriptedConnection(socket, waiter)
        connectionCount += 1
        openCount += 1
        defer {
            openCount -= 1
            connection.close()
            waiter.invalidate()
        }
        if let context, await !connection.startTLS(context) { return }
        while let request = await connection.readRequest() {
            requests.append(request)
            guard let answer = script(request, requests.count - 1) else { return }
            if answer.delay > .zero {
                _ = await Waiter(loop: loop).wait(until: loop.now.advanced(by: answer.delay))
            }
            guard await connection.write(answer.bytes) else { return }
            switch answer.ending {
            case .close:
                connection.finish()
                await connection.drain()
                return
            case .cut: return
            case .silence:
                await connection.drain()
                return
            case .startTLS(let context):
                if await !connection.startTLS(context) { return }
            case .another: continue
            }
        }
    }
}
