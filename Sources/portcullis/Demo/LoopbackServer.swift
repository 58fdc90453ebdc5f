internal import HTTP
internal import Reactor

/// What a loopback server answers.
struct LoopbackAnswer: Sendable {
    var status: UInt16 = 200
    var contentType: StaticString = "text/plain; charset=utf-8"
    var body: String
}

/// A request that a loopback server got.
struct LoopbackRequest: Sendable {
    /// The head, as it came.
    var head: String
    var method: String
    var path: String
    /// Bytes of the body.
    var bodyCount: Int
}

/// A small HTTP server for the demo's backend and issuer: loopback only, one handler, bodies
/// counted and dropped.
actor LoopbackServer {
    private static let limits = HeadLimits(bytes: 64 << 10, fields: 200)
    private static let idleTime = Duration.seconds(60)

    private nonisolated let loop: EventLoop
    private let listening: ListeningDescriptor
    private let handler: @Sendable (LoopbackRequest) -> LoopbackAnswer

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(
        _ listening: ListeningDescriptor, loop: EventLoop,
        handler: @escaping @Sendable (LoopbackRequest) -> LoopbackAnswer
    ) {
        self.listening = listening
        self.loop = loop
        self.handler = handler
    }

    /// Serves for as long as the process lives.
    func run() async throws(Errno) {
        let waiter = Waiter(loop: loop)
        let listener = try ListeningSocket(listening, loop: loop, waiter: waiter)
        while true {
            while let (socket, _) = try listener.accept() {
                Task { await serve(SocketStream(socket, loop: loop)) }
            }
            _ = await waiter.wait()
        }
    }

    private func serve(_ stream: SocketStream) async {
        let input = stream.received
        var parser = RequestParser(limits: Self.limits)
        var head = RequestHead()
        while await readHead(stream, &parser, &head) {
            var request = LoopbackRequest(head, in: input.bytes)
            input.consume(head.length)
            guard let count = await readBody(stream, head.framing) else { break }
            request.bodyCount = count
            let output = ByteBuffer(capacity: 1024)
            handler(request).write(to: output, includesBody: head.method != .head)
            guard await stream.send(output, until: deadline), head.isPersistent else { break }
        }
        stream.close()
    }

    private var deadline: MonotonicInstant { loop.now.advanced(by: Self.idleTime) }

    private func readHead(
        _ stream: SocketStream, _ parser: inout RequestParser, _ head: inout RequestHead
    ) async -> Bool {
        let input = stream.received
        while true {
            guard let isComplete = try? parser.parse(input.bytes, into: &head) else { return false }
            if isComplete { return true }
            guard await stream.receive(until: deadline) else { return false }
        }
    }

    /// The number of bytes of the body; nil when it did not come whole.
    private func readBody(_ stream: SocketStream, _ framing: BodyFraming) async -> Int? {
        let input = stream.received
        var decoder = BodyDecoder(framing)
        var total = 0
        while true {
            guard let step = try? decoder.next(input.bytes) else { return nil }
            switch step {
            case .end(let skip):
                input.consume(skip)
                return total
            case .content(let skip, let count):
                input.consume(skip + count)
                decoder.consumed(count)
                total += count
            case .needsMore(let skip):
                input.consume(skip)
                guard await stream.receive(until: deadline) else { return nil }
            }
        }
    }
}

extension LoopbackAnswer {
    fileprivate func write(to output: ByteBuffer, includesBody: Bool) {
        output.appendStatusLine(status)
        output.appendField("Content-Type", contentType)
        output.appendField("Content-Length", decimal: UInt64(body.utf8.count))
        output.appendField("Cache-Control", "no-store")
        output.appendLineEnd()
        if includesBody { output.append(body) }
    }
}

extension LoopbackRequest {
    fileprivate init(_ parsed: RequestHead, in bytes: Span<UInt8>) {
        head = Self.text(bytes.extracting(first: parsed.length))
        method = Self.text(bytes.slice(parsed.methodName))
        path = parsed.target.pathText(in: bytes)
        bodyCount = 0
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}
