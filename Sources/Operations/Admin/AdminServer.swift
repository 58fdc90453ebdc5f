internal import Configuration
internal import HTTP
public import Proxy
public import Reactor

/// The admin listener: status, metrics, probes and changes, away from every public listener
/// (pitfall O7).
///
/// It lives on a loop that serves no requests, so that a busy proxy still answers its probes, and it
/// bounds what a stranger on that address can cost: connections, bytes and time.
public actor AdminServer {
    private static let connectionLimit = 64
    private static let headLimits = HeadLimits(bytes: 8 << 10, fields: 64, target: 1 << 10)
    /// From one answer to the end of the next head.
    private static let requestTime = Duration.seconds(10)
    private static let answerTime = Duration.seconds(10)
    private static let lingerTime = Duration.seconds(1)
    private static let lingerBytes = 64 << 10
    /// How long accepting pauses when there is no descriptor or memory left.
    private static let exhaustionPause = Duration.milliseconds(100)

    private nonisolated let loop: EventLoop
    private let pages: AdminPages
    private let events: any EventLog
    private let acceptWaiter: Waiter
    private var streams: [ObjectIdentifier: SocketStream] = [:]
    private var listener: ListeningSocket?
    private var isStopped = false
    private var isExhausted = false
    /// The address is one that only this machine reaches.
    private var isForThisMachine = false

    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Makes a server that runs on `loop`.
    public init(loop: EventLoop, pages: AdminPages, events: any EventLog) {
        self.loop = loop
        self.pages = pages
        self.events = events
        acceptWaiter = Waiter(loop: loop)
    }

    /// Serves connections of `listening` until `stop()`.
    ///
    /// - Throws: when the loop cannot watch the descriptor.
    public func run(_ listening: ListeningDescriptor) async throws(Errno) {
        isForThisMachine = listening.address.isLoopback
        try accept(from: listening)
        while !isStopped {
            let deadline = acceptAll()
            _ = await acceptWaiter.wait(until: deadline)
        }
        acceptWaiter.invalidate()
    }

    /// Leaves new connections in the kernel's queue, from where another process may take them.
    public func suspendAccepting() {
        listener?.close()
        listener = nil
    }

    /// Takes what waits at `listening`, after `suspendAccepting`.
    ///
    /// - Throws: when the loop cannot watch the descriptor.
    public func resumeAccepting(from listening: ListeningDescriptor) throws(Errno) {
        if isStopped { return }
        try accept(from: listening)
        acceptWaiter.wake()
    }

    private func accept(from listening: ListeningDescriptor) throws(Errno) {
        listener = try ListeningSocket(listening, loop: loop, waiter: acceptWaiter)
    }

    /// Accepts nothing more and ends open connections; `run` returns.
    public func stop() {
        isStopped = true
        suspendAccepting()
        acceptWaiter.wake()
        for stream in streams.values { stream.endReceiving() }
    }

    /// - Returns: when to try again although nothing woke us.
    private func acceptAll() -> MonotonicInstant {
        guard let listener else { return .never }
        // Beyond the limit, connections wait in the kernel; one that ends here wakes us.
        while streams.count < Self.connectionLimit {
            do throws(Errno) {
                guard let (socket, peer) = try listener.accept() else { return .never }
                isExhausted = false
                let client = socket.peerProcess ?? peer.description
                let stream = SocketStream(socket, loop: loop)
                streams[ObjectIdentifier(stream)] = stream
                Task { await serve(stream, of: client) }
            } catch {
                if !isExhausted {
                    events.log(
                        .error, "cannot accept connections of the admin listener; trying again",
                        [(name: "error", value: error.description)])
                }
                isExhausted = true
                return loop.now.advanced(by: Self.exhaustionPause)
            }
        }
        return .never
    }

    /// - Parameter client: Who is at the other end, for the log.
    private func serve(_ stream: SocketStream, of client: String) async {
        let output = ByteBuffer(capacity: 1 << 10)
        var parser = RequestParser(limits: Self.headLimits)
        var head = RequestHead()
        while !isStopped {
            var refusal: AdminAnswer?
            do throws(MalformedMessage) {
                guard try await readHead(stream, &parser, &head) else { break }
                if head.framing != .none {
                    refusal = AdminAnswer(400, problem: "a request here has no body")
                }
            } catch {
                refusal = AdminAnswer(
                    error.status, problem: "the request is not proper HTTP: \(error.kind.rawValue)")
            }
            let received = stream.received
            let answer: AdminAnswer
            if let refusal {
                answer = refusal
            } else {
                let request = AdminRequest(head, in: received.bytes, client: client)
                answer = await pages.answer(request, isForThisMachine: isForThisMachine)
            }
            let closes = refusal != nil || !head.isPersistent
            answer.write(
                to: output, at: loop.wallMicroseconds / 1_000_000,
                includesBody: head.method != .head, closes: closes)
            let deadline = loop.now.advanced(by: Self.answerTime)
            guard await stream.send(output, until: deadline) else { break }
            if closes {
                await stream.linger(
                    limit: Self.lingerBytes, until: loop.now.advanced(by: Self.lingerTime))
                break
            }
            received.consume(head.length)
        }
        stream.close()
        streams[ObjectIdentifier(stream)] = nil
        acceptWaiter.wake()
    }

    /// - Returns: false when the connection ended, or the time was over, before there was a head.
    private func readHead(
        _ stream: SocketStream, _ parser: inout RequestParser, _ head: inout RequestHead
    ) async throws(MalformedMessage) -> Bool {
        let deadline = loop.now.advanced(by: Self.requestTime)
        let received = stream.received
        while try !parser.parse(received.bytes, into: &head) {
            guard await stream.receive(until: deadline) else { return false }
        }
        return true
    }
}
