internal import Configuration
internal import FoundationEssentials
internal import HTTP
internal import Reactor
internal import Synchronization

/// Asks the admin listener of a running proxy: one request, from a thread that has nothing else to
/// do.
struct AdminClient {
    /// An answer, whatever its status.
    struct Answer: Sendable {
        var status: UInt16
        var contentType: String
        var body: [UInt8]

        /// The problem document's text (RFC 9457), or nil when it is none.
        var problem: String? {
            struct Document: Decodable {
                var detail: String
            }
            guard contentType.hasPrefix("application/problem+json") else { return nil }
            return try? JSONDecoder().decode(Document.self, from: Data(body)).detail
        }
    }

    /// A loop that is stuck is waited for a second by the other side.
    private static let patience = Duration.seconds(10)

    let address: ListenAddress

    /// - Parameters:
    ///   - method: GET or POST, without a body.
    ///   - path: As it goes over the wire.
    ///   - token: What a change needs.
    func ask(_ method: HTTP.Method, _ path: String, token: String? = nil)
        throws(AdminClientError) -> Answer
    {
        let target: SocketAddress? =
            switch address {
            case .tcp(let host, let port): SocketAddress(literal: host, port: port)
            case .unix(let path): SocketAddress(unixPath: path)
            }
        guard let target, let loop = try? EventLoop() else {
            throw AdminClientError("\(address) is no address that can be asked")
        }
        let question = AdminQuestion(method: method, path: path, token: token, address: address)
        let outcome = Outcome()
        let exchange = AdminExchange(loop: loop)
        Task.detached(executorPreference: loop) {
            let result = await exchange.ask(question, target, patience: Self.patience)
            outcome.result.withLock { $0 = result }
            loop.stop()
        }
        loop.run()
        let result = outcome.result.withLock { $0 }
        guard let result else { throw AdminClientError("no answer") }
        return try result.get()
    }

    private final class Outcome: Sendable {
        let result = Mutex<Result<Answer, AdminClientError>?>(nil)
    }
}

/// What is asked, and of whom.
struct AdminQuestion: Sendable {
    var method: HTTP.Method
    var path: String
    var token: String?
    var address: ListenAddress

    /// Appends it as it goes over the wire.
    func write(to output: ByteBuffer) {
        output.append("\(method == .post ? "POST" : "GET") \(path) HTTP/1.1\r\n")
        output.append("Host: \(host)\r\n")
        if let token { output.append("Authorization: Bearer \(token)\r\n") }
        if method == .post { output.append("Content-Length: 0\r\n") }
        output.append("Accept: application/json\r\nConnection: close\r\n\r\n")
    }

    private var host: String {
        switch address {
        case .tcp: address.description
        case .unix: "localhost"
        }
    }

    /// Words for what kept the proxy from answering.
    func failure(_ error: Errno) -> AdminClientError {
        let place = "\(address)"
        switch (error, address) {
        case (.noSuchFile, .unix(let path)):
            return AdminClientError(
                "there is no socket \(path); is the proxy running, and is this its [admin] listen?")
        case (.permissionDenied, .unix(let path)):
            return AdminClientError(
                "permission denied for the socket \(path); ask as the user that the proxy runs as, "
                    + "or as root")
        case (.connectionRefused, _):
            return AdminClientError(
                "nobody listens on \(place); is the proxy running, and is this its [admin] listen "
                    + "(-c FILE, or --admin ADDRESS)?")
        case (.timedOut, _):
            return AdminClientError("\(place) took no connection in time; is the process stuck?")
        default: return AdminClientError("cannot connect to \(place): \(error)")
        }
    }
}

/// One connection to the admin listener, on a loop of its own.
private actor AdminExchange {
    private static let longestBody = 64 << 20

    private nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(loop: EventLoop) {
        self.loop = loop
    }

    func ask(_ question: AdminQuestion, _ target: SocketAddress, patience: Duration) async
        -> Result<AdminClient.Answer, AdminClientError>
    {
        let deadline = loop.now.advanced(by: patience)
        let stream: SocketStream
        do throws(Errno) {
            stream = try await SocketStream.open(to: target, loop: loop, until: deadline)
        } catch {
            return .failure(question.failure(error))
        }
        defer { stream.close() }
        let output = ByteBuffer(capacity: 1024)
        question.write(to: output)
        guard await stream.send(output, until: deadline),
            let answer = await receive(stream, question.method, until: deadline)
        else {
            return .failure(
                AdminClientError(
                    "\(question.address) gave no proper answer in \(patience); is that the admin "
                        + "listener of Portcullis?"))
        }
        return .success(answer)
    }

    private func receive(
        _ stream: SocketStream, _ method: HTTP.Method, until deadline: MonotonicInstant
    ) async -> AdminClient.Answer? {
        let received = stream.received
        var parser = ResponseParser(limits: HeadLimits())
        var head = ResponseHead()
        while true {
            let isComplete = try? parser.parse(
                received.bytes, requestMethod: method, into: &head)
            guard let isComplete else { return nil }
            if isComplete { break }
            guard await stream.receive(until: deadline) else { return nil }
        }
        let type = head.fields.first(.contentType).map { line in
            received.bytes.slice(line.value).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        received.consume(head.length)
        let body = await receiveBody(stream, head.framing, until: deadline)
        return body.map {
            AdminClient.Answer(status: head.status, contentType: type ?? "", body: $0)
        }
    }

    private func receiveBody(
        _ stream: SocketStream, _ framing: BodyFraming, until deadline: MonotonicInstant
    ) async -> [UInt8]? {
        let received = stream.received
        var decoder = BodyDecoder(framing)
        var body: [UInt8] = []
        while body.count <= Self.longestBody {
            guard let step = try? decoder.next(received.bytes) else { return nil }
            switch step {
            case .end: return body
            case .content(let skip, let count):
                received.consume(skip)
                received.withUnsafeBytes { body.append(contentsOf: $0.prefix(count)) }
                received.consume(count)
                decoder.consumed(count)
            case .needsMore(let skip):
                received.consume(skip)
                if await stream.receive(until: deadline) { continue }
                return framing == .untilClose ? body : nil
            }
        }
        return nil
    }
}
