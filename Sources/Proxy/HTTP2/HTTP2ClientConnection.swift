internal import HTTP
internal import Reactor
internal import TLS

/// One HTTP/2 connection of a client: a task for each request, none for the connection.
final class HTTP2ClientConnection {
    private static let lingerTime = Duration.seconds(1)
    /// Between the notice that no more streams are welcome and the end of taking them: one round
    /// trip, generously (RFC 9113, section 6.8).
    private static let shutdownNotice = Duration.milliseconds(500)

    /// Between two looks at what the kernel has left to say.
    private static let handOverPause = Duration.milliseconds(100)

    /// Requests beyond `requests_per_connection` while there is no moment without any.
    private static let overtime = 128

    /// The connection as it was accepted: peer, listener, transport and accounting.
    private let origin: ClientConnection
    private let state: LoopState
    private let link: HTTP2Link
    private var idleSince: MonotonicInstant
    private var shutdownAt = MonotonicInstant.never
    private var closesAt = MonotonicInstant.never
    /// When it closes whatever the kernel has left to say.
    private var givesUpAt = MonotonicInstant.never
    /// When the streams that only wait for the client are looked at again.
    private var leftoversDueAt = MonotonicInstant.never
    private var isShuttingDown = false
    /// Requests that have not begun, because too many came at once.
    private var waiting: [HTTP2Stream] = []
    private var round: MonotonicInstant
    private var begunInRound = RequestTurns.ofConnection - RequestTurns.ofFreshConnection

    /// Takes a connection over. Nil without memory.
    ///
    /// - Parameter received: What came of it already.
    init?(_ origin: ClientConnection, received: ByteBuffer?) {
        var limits = HTTP2Limits()
        limits.head = origin.listener.headLimits
        guard
            let link = try? HTTP2Link(
                origin.transport, role: .server, limits: limits, state: origin.state)
        else { return nil }
        self.origin = origin
        self.link = link
        state = origin.state
        idleSince = state.loop.now
        round = state.loop.now
        link.owner = self
        link.session.onRequest = { [unowned self] stream in arrived(stream) }
        link.session.onRefusal = { [unowned self] in
            if isShuttingDown { return }
            state.recorder.connection(.limited(.http2Streams), listener: origin.listener.name)
        }
        if let received {
            link.take(received)
            received.removeAll()
        }
        link.readAll()
        if !link.isClosed { sleep() }
    }

    private func arrived(_ stream: HTTP2Stream) {
        origin.setActive(true)
        origin.countStream()
        if waiting.isEmpty && !state.requestTurns.isAwaited && mayBegin { return begin(stream) }
        waiting.append(stream)
        if waiting.count == 1 { state.requestTurns.join(self) }
    }

    /// Another request may begin in this round of the loop.
    private var mayBegin: Bool {
        let now = state.loop.now
        // The loop's clock moves once a round.
        if round != now {
            round = now
            begunInRound = 0
        }
        return begunInRound < RequestTurns.ofConnection && state.requestTurns.isOpen
    }

    /// Requests wait for their turn.
    var hasWaiting: Bool { !waiting.isEmpty }

    /// Begins requests that wait, as far as its turn goes.
    func takeTurn() {
        // What the client has given up meanwhile costs nobody a turn.
        while let stream = waiting.first, isGivenUp(stream) || mayBegin {
            waiting.removeFirst()
            if isGivenUp(stream) { stream.close() } else { begin(stream) }
        }
        if !link.isClosed { sleep() }
    }

    /// The client wants no answer any more. One whose message is malformed is told so, and the log.
    private func isGivenUp(_ stream: HTTP2Stream) -> Bool {
        stream.isBroken && !stream.isMalformed
    }

    private func begin(_ stream: HTTP2Stream) {
        begunInRound += 1
        state.requestTurns.began()
        if let resting = state.takeResting() { return resting.adopt(stream, of: origin) }
        let request = ClientConnection(stream, of: origin)
        request.open()
        state.startServing(request)
    }

    private func sleep() {
        let session = link.session
        let hasStreams = session.hasStreams
        if hasStreams { idleSince = state.loop.now }
        origin.setActive(hasStreams)
        origin.noteIdle(since: idleSince)
        // There are clients that give up all requests under way when they hear of it, so that waits
        // for a moment without any; but not for ever.
        if origin.requestsLeft <= (hasStreams ? -Self.overtime : 0)
            || origin.session != nil && origin.transport.isDueToEnd
        {
            startShutdown()
        }
        if session.leftoverCount == 0 {
            leftoversDueAt = .never
        } else if leftoversDueAt == .never {
            leftoversDueAt = state.loop.now.advanced(byNanoseconds: lookInterval)
        }
        let idle = hasStreams ? MonotonicInstant.never : idleDeadline
        let soonest = min(idle, closesAt, shutdownAt, leftoversDueAt)
        origin.waiter.sleep(self, until: min(soonest, headDeadline, stallDeadline))
    }

    /// How long the client may take to take or to send something.
    private var patience: Int64 { origin.listener.idleNanoseconds }

    /// Between two looks at streams that only wait for the client.
    private var lookInterval: Int64 { max(1, min(patience, Self.lingerTime.nanoseconds)) }

    /// A head that was begun has to be complete by then, as on HTTP/1.1.
    private var headDeadline: MonotonicInstant {
        link.session.headBegan?.advanced(byNanoseconds: origin.listener.headerNanoseconds) ?? .never
    }

    /// The client has to have read something of what waits by then.
    private var stallDeadline: MonotonicInstant {
        link.stalledSince?.advanced(byNanoseconds: patience) ?? .never
    }

    private var idleDeadline: MonotonicInstant {
        idleSince.advanced(byNanoseconds: patience)
    }

    /// Tells, once, why the connection has to end.
    private func note(_ failure: HTTP2Failure) {
        if closesAt != .never { return }
        let listener = origin.listener.name
        state.recorder.connection(.http2Failed(failure), listener: listener)
        if failure == .stalled {
            state.recorder.connection(.limited(.headerTimeout), listener: listener)
        }
        if failure != .flood { return }
        state.recorder.connection(.limited(.http2Flood), listener: listener)
        state.notices.note(
            .http2Flood, "a connection was ended", listener: listener, client: origin.peer.host,
            now: state.loop.now, log: state.log)
    }

    /// Takes no more streams, after a notice so that those on the way are not lost.
    private func startShutdown() {
        if isShuttingDown { return }
        isShuttingDown = true
        link.session.announceShutdown()
        shutdownAt = state.loop.now.advanced(by: Self.shutdownNotice)
    }

    /// Closes once everything is said and the peer had time to read it.
    private func startClosing() {
        if closesAt == .never { closesAt = state.loop.now.advanced(by: Self.lingerTime) }
    }

    /// The kernel has something left to say that closing would cut off; then there is another look
    /// after a while, for as long as the client may be idle.
    private func isHeldBack(_ now: MonotonicInstant) -> Bool {
        guard let tls = origin.kernelSealed, !tls.isHandedOver else { return false }
        if givesUpAt == .never { givesUpAt = now.advanced(byNanoseconds: patience) }
        if now >= givesUpAt { return false }
        closesAt = now.advanced(by: Self.handOverPause)
        return true
    }
}

extension HTTP2ClientConnection: HTTP2LinkOwner {
    func linkMoved() {
        if let failure = link.session.failure { note(failure) }
        if link.hasFailed || link.session.isOver { startClosing() }
        if closesAt != .never && link.isFlushed && !link.session.hasStreams {
            link.finishWriting()
        }
        sleep()
    }

    func linkHasMore() {
        link.readAll()
        if !link.isClosed { linkMoved() }
    }

    func linkClosed() {
        waiting.removeAll()
        origin.end()
    }
}

extension HTTP2ClientConnection: Sleeper {
    func awaken(_ reason: WakeReason) {
        if link.isClosed { return }
        let now = state.loop.now
        if now >= stallDeadline { origin.noteIdleTimeout() }
        if origin.isAborted || now >= stallDeadline || now >= closesAt && !isHeldBack(now) {
            return link.close()
        }
        link.readAll()
        if link.isClosed { return }
        link.resumeSending()
        if now >= headDeadline { link.session.endStalled() }
        if now >= leftoversDueAt {
            leftoversDueAt = .never
            link.session.dropLeftovers(patience: Int(clamping: patience / lookInterval))
        }
        if state.isDraining || origin.isDismissed { startShutdown() }
        if now >= shutdownAt {
            shutdownAt = .never
            link.session.finishShutdown()
        } else if !link.session.hasStreams && now >= idleDeadline {
            origin.noteIdleTimeout()
            link.session.finishShutdown()
            startClosing()
        }
        linkMoved()
    }
}
