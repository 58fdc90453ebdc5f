internal import HTTP
internal import Reactor

/// One HTTP/2 connection of a client: moves bytes between its transport and its session, and starts
/// a task for each request. It needs no task itself: it is called when bytes come, and once after
/// the loop's jobs when streams have written something.
final class HTTP2ClientConnection {
    /// What is produced in advance of what the transport takes.
    private static let outputLimit = 64 << 10
    private static let lingerTime = Duration.seconds(1)
    /// Between the notice that no more streams are welcome and the end of taking them: one round
    /// trip, generously (RFC 9113, section 6.8).
    private static let shutdownNotice = Duration.milliseconds(500)

    /// The connection as it was accepted: peer, listener, transport and accounting.
    private let origin: ClientConnection
    private let state: LoopState
    private let transport: any Transport
    private let session: HTTP2Session
    /// What the transport did not take yet; nil when it took all.
    private var pending: ByteBuffer?
    private var isFlushDue = false
    private var idleSince: MonotonicInstant
    private var shutdownAt = MonotonicInstant.never
    private var closesAt = MonotonicInstant.never
    private var isShuttingDown = false
    private var hasFinishedWriting = false
    private var isClosed = false

    /// Takes a connection over. Nil without memory.
    ///
    /// - Parameter received: What came of it already.
    init?(_ origin: ClientConnection, received: ByteBuffer?) {
        var limits = HTTP2Limits()
        limits.head = origin.listener.headLimits
        guard
            let session = try? HTTP2Session(
                role: .server, limits: limits, now: origin.state.loop.now)
        else { return nil }
        self.origin = origin
        self.session = session
        state = origin.state
        transport = origin.socket
        idleSince = state.loop.now
        session.onRequest = { [unowned self] stream in begin(stream) }
        session.onOutput = { [unowned self] in scheduleFlush() }
        scheduleFlush()
        if let received {
            take(received)
            received.removeAll()
        }
        readAll()
        sleep()
    }

    // MARK: Requests

    private func begin(_ stream: HTTP2Stream) {
        origin.setActive(true)
        let request = ClientConnection(stream, of: origin)
        request.open()
        state.startServing(request)
    }

    // MARK: Bytes

    private func readAll() {
        let scratch = state.scratch
        while transport.isReadable && !isClosed {
            scratch.removeAll()
            switch try? transport.read(into: scratch) {
            case .bytes: take(scratch)
            case .wouldBlock: return
            case .endOfStream, nil:
                close()
                return
            }
        }
    }

    private func take(_ buffer: ByteBuffer) {
        if closesAt != .never { return }
        do throws(HTTP2Failure) {
            try session.receive(buffer.bytes, now: state.loop.now)
        } catch {
            // What explains it still goes out; the rest of what comes is not read.
            closesAt = state.loop.now.advanced(by: Self.lingerTime)
            scheduleFlush()
        }
    }

    private func scheduleFlush() {
        if isFlushDue || isClosed { return }
        isFlushDue = true
        state.flushAfterJobs(self)
    }

    /// Sends what the session and its streams have to say.
    func flush() {
        isFlushDue = false
        if isClosed { return }
        let output = pending ?? state.scratch
        if pending == nil { output.removeAll() }
        var hasMore = true
        while hasMore || !output.isEmpty {
            if hasMore && output.count < Self.outputLimit {
                hasMore = session.produce(into: output, limit: Self.outputLimit)
            }
            if output.isEmpty { break }
            let result = try? output.withUnsafeBytes { bytes throws(Errno) in
                try transport.write(bytes)
            }
            guard case .bytes(let count)? = result else {
                if result == nil { return close() }
                break
            }
            output.consume(count)
        }
        keep(output)
        if pending == nil { endIfOver() }
        if !isClosed { sleep() }
    }

    /// Keeps what was not taken: the loop's own buffer is for everybody.
    private func keep(_ output: ByteBuffer) {
        if output.isEmpty {
            pending = nil
        } else if pending == nil {
            let kept = ByteBuffer(capacity: output.count)
            kept.append(output.bytes)
            output.removeAll()
            pending = kept
        }
    }

    // MARK: The life of the connection

    private func endIfOver() {
        if session.isOver && closesAt == .never {
            closesAt = state.loop.now.advanced(by: Self.lingerTime)
        }
        if closesAt != .never && !session.hasStreams && !hasFinishedWriting {
            hasFinishedWriting = true
            transport.finishWriting()
        }
    }

    private func sleep() {
        if session.hasStreams {
            idleSince = state.loop.now
        } else {
            origin.setActive(false)
        }
        var deadline = session.hasStreams ? .never : idleDeadline
        deadline = min(deadline, closesAt, shutdownAt)
        origin.waiter.sleep(self, until: deadline)
    }

    private var idleDeadline: MonotonicInstant {
        idleSince.advanced(byNanoseconds: origin.listener.idleNanoseconds)
    }

    private func startShutdown() {
        if isShuttingDown { return }
        isShuttingDown = true
        session.announceShutdown()
        shutdownAt = state.loop.now.advanced(by: Self.shutdownNotice)
    }

    private func close() {
        if isClosed { return }
        isClosed = true
        session.abandon()
        origin.end()
    }
}

extension HTTP2ClientConnection: Sleeper {
    func awaken(_ reason: WakeReason) {
        if isClosed { return }
        let now = state.loop.now
        if origin.isAborted || now >= closesAt { return close() }
        readAll()
        if isClosed { return }
        if state.isDraining { startShutdown() }
        if now >= shutdownAt {
            shutdownAt = .never
            session.finishShutdown()
        } else if !session.hasStreams && now >= idleDeadline && closesAt == .never {
            session.finishShutdown()
            closesAt = now.advanced(by: Self.lingerTime)
        }
        if pending != nil { scheduleFlush() }
        sleep()
    }
}
