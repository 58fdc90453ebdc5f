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
                Task { await serve(socket) }
            }
            _ = await waiter.wait()
        }
    }

    private func serve(_ socket: Socket) async {
        let waiter = Waiter(loop: loop)
        socket.waiter = waiter
        let input = ByteBuffer(capacity: 16 << 10)
        var parser = RequestParser(limits: Self.limits)
        var head = RequestHead()
        while await readHead(socket, waiter, input, &parser, &head) {
            var request = LoopbackRequest(head: "", method: "", path: "", bodyCount: 0)
            request.fill(from: head, input)
            input.consume(head.length)
            guard let count = await readBody(socket, waiter, input, head.framing) else { break }
            request.bodyCount = count
            let answer = handler(request)
            let isSent = await send(answer, isHead: head.method == .head, socket, waiter)
            if !isSent || !head.isPersistent { break }
        }
        waiter.invalidate()
        socket.close()
    }

    private func readHead(
        _ socket: Socket, _ waiter: Waiter, _ input: ByteBuffer, _ parser: inout RequestParser,
        _ head: inout RequestHead
    ) async -> Bool {
        while true {
            guard let isComplete = try? parser.parse(input.bytes, into: &head) else { return false }
            if isComplete { return true }
            if await !readMore(socket, waiter, input) { return false }
        }
    }

    /// The number of bytes of the body; nil when it did not come whole.
    private func readBody(
        _ socket: Socket, _ waiter: Waiter, _ input: ByteBuffer, _ framing: BodyFraming
    ) async -> Int? {
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
                if await !readMore(socket, waiter, input) { return nil }
            }
        }
    }

    private func readMore(_ socket: Socket, _ waiter: Waiter, _ input: ByteBuffer) async -> Bool {
        let deadline = loop.now.advanced(by: Self.idleTime)
        input.reserve(4096)
        while true {
            switch try? socket.read(into: input) {
            case .bytes: return true
            case .wouldBlock:
                if await waiter.wait(until: deadline) == .timedOut { return false }
            case .endOfStream, nil: return false
            }
        }
    }

    private func send(_ answer: LoopbackAnswer, isHead: Bool, _ socket: Socket, _ waiter: Waiter)
        async -> Bool
    {
        let output = ByteBuffer(capacity: 1024)
        output.appendStatusLine(answer.status)
        output.append("Content-Type: ")
        output.append(answer.contentType)
        output.append("\r\nContent-Length: ")
        output.append(decimal: UInt64(answer.body.utf8.count))
        output.append("\r\nCache-Control: no-store\r\n\r\n")
        if !isHead { output.append(answer.body) }
        while !output.isEmpty {
            let result = try? output.withUnsafeBytes { bytes throws(Errno) in
                try socket.write(bytes)
            }
            switch result {
            case .bytes(let count): output.consume(count)
            case .wouldBlock: _ = await waiter.wait(until: loop.now.advanced(by: Self.idleTime))
            case .endOfStream, nil: return false
            }
        }
        return true
    }
}

extension LoopbackRequest {
    fileprivate mutating func fill(from parsed: RequestHead, _ input: ByteBuffer) {
        let bytes = input.bytes
        head = Self.text(bytes.extracting(first: parsed.length))
        method = Self.text(bytes.slice(parsed.methodName))
        path =
            parsed.target.isRewritten
            ? String(decoding: parsed.target.rewritten, as: UTF8.self)
            : Self.text(bytes.slice(parsed.target.path))
    }

    private static func text(_ bytes: Span<UInt8>) -> String {
        bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}
