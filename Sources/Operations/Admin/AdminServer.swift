internal import Configuration
internal import HTTP
public import Proxy
public import Reactor

/// The admin listener: metrics, liveness and readiness, away from every public listener (pitfall
/// O7).
///
/// It lives on a loop of its own, so that a busy proxy still answers its probes, and it bounds what
/// a stranger on that address can cost: connections, bytes and time.
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
    private var waiters: [ObjectIdentifier: Waiter] = [:]
    private var isStopped = false
    private var isExhausted = false

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
        let listener = try ListeningSocket(listening, loop: loop, waiter: acceptWaiter)
        while !isStopped {
            let deadline = acceptAll(listener)
            _ = await acceptWaiter.wait(until: deadline)
        }
        acceptWaiter.invalidate()
        listener.close()
    }

    /// Accepts nothing more and ends open connections; `run` returns.
    public func stop() {
        isStopped = true
        acceptWaiter.wake()
        for waiter in waiters.values { waiter.wake() }
    }

    /// - Returns: when to try again although nothing woke us.
    private func acceptAll(_ listener: ListeningSocket) -> MonotonicInstant {
        // Beyond the limit, connections wait in the kernel; one that ends here wakes us.
        while waiters.count < Self.connectionLimit {
            do throws(Errno) {
                guard let (socket, _) = try listener.accept() else { return .never }
                isExhausted = false
                let waiter = Waiter(loop: loop)
                socket.waiter = waiter
                waiters[ObjectIdentifier(waiter)] = waiter
                Task { await serve(socket, waiter) }
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

    private func serve(_ socket: Socket, _ waiter: Waiter) async {
        let connection = AdminConnection(socket, waiter, loop: loop)
        var parser = RequestParser(limits: Self.headLimits)
        var head = RequestHead()
        while !isStopped {
            let deadline = loop.now.advanced(by: Self.requestTime)
            var refusal: AdminAnswer?
            do throws(MalformedMessage) {
                guard try await readHead(connection, &parser, &head, until: deadline) else { break }
                if head.framing != .none {
                    refusal = AdminAnswer(refusing: 400, "a request here has no body")
                }
            } catch {
                refusal = AdminAnswer(refusing: error.status, error.kind.rawValue)
            }
            let answer = refusal ?? pages.answer(head.method, path: connection.path(head))
            let closes = refusal != nil || !head.isPersistent
            let bytes = answer.serialised(
                at: loop.wallMicroseconds / 1_000_000,
                includesBody: head.method != .head, closes: closes)
            let answered = await connection.write(
                bytes, until: loop.now.advanced(by: Self.answerTime))
            if !answered { break }
            if closes {
                // Closing with unread bytes would reset the connection under the answer.
                await connection.linger(
                    bytes: Self.lingerBytes, until: loop.now.advanced(by: Self.lingerTime))
                break
            }
            connection.received.consume(head.length)
        }
        socket.close()
        waiter.invalidate()
        waiters[ObjectIdentifier(waiter)] = nil
        acceptWaiter.wake()
    }

    /// - Returns: false when the connection ended, or `deadline` passed, before there was a head.
    private func readHead(
        _ connection: AdminConnection, _ parser: inout RequestParser, _ head: inout RequestHead,
        until deadline: MonotonicInstant
    ) async throws(MalformedMessage) -> Bool {
        while !isStopped {
            let received = connection.received
            if try parser.parse(received.bytes, into: &head) { return true }
            guard await connection.readMore(until: deadline) else { return false }
        }
        return false
    }
}
