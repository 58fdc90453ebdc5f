internal import HTTP
internal import Reactor

/// One HTTP/2 connection to a server of an upstream, which many requests share.
final class HTTP2UpstreamConnection {
    private static let closingTime = Duration.seconds(1)

    private let link: HTTP2Link
    private let state: LoopState
    private let waiter: Waiter
    private let idleNanoseconds: Int64
    private var idleSince: MonotonicInstant
    private var closesAt = MonotonicInstant.never
    private var isRetired = false
    private var hasEnded = false
    /// Called once, when no request can begin on it any more.
    private let onEnd: (HTTP2UpstreamConnection) -> Void

    /// Takes over a connected transport. Nil without memory.
    ///
    /// - Parameter idleNanoseconds: How long it may lie idle.
    init?(
        _ transport: any Transport, idleNanoseconds: Int64, state: LoopState,
        onEnd: @escaping (HTTP2UpstreamConnection) -> Void
    ) {
        guard
            let link = try? HTTP2Link(
                transport, role: .client, limits: .upstream, state: state)
        else { return nil }
        self.link = link
        self.state = state
        self.idleNanoseconds = idleNanoseconds
        self.onEnd = onEnd
        waiter = Waiter(loop: state.loop)
        idleSince = state.loop.now
        transport.waiter = waiter
        link.owner = self
        sleep()
    }

    /// A stream for a request; nil when the connection takes no more now.
    func openStream() -> HTTP2Stream? {
        isRetired || hasEnded ? nil : link.session.openStream()
    }

    /// Takes no more requests, and closes when those under way are over.
    func retire() {
        isRetired = true
        endIfIdle()
    }

    private func sleep() {
        if link.session.hasStreams { idleSince = state.loop.now }
        let idle = link.session.hasStreams ? MonotonicInstant.never : idleDeadline
        waiter.sleep(self, until: min(idle, closesAt))
    }

    private var idleDeadline: MonotonicInstant {
        idleSince.advanced(byNanoseconds: idleNanoseconds)
    }

    private func endIfIdle() {
        if link.isClosed { return }
        if link.session.isGoingAway || link.hasFailed { end() }
        let isUnwanted = isRetired || hasEnded || state.loop.now >= idleDeadline
        if link.session.hasStreams || !isUnwanted { return }
        end()
        if closesAt == .never {
            link.session.finishShutdown()
            closesAt = state.loop.now.advanced(by: Self.closingTime)
        }
        if link.isFlushed { link.close() }
    }

    private func end() {
        if hasEnded { return }
        hasEnded = true
        onEnd(self)
    }
}

extension HTTP2UpstreamConnection: HTTP2LinkOwner {
    func linkMoved() {
        endIfIdle()
        if !link.isClosed { sleep() }
    }

    func linkClosed() {
        end()
        waiter.invalidate()
        link.transport.close()
    }
}

extension HTTP2UpstreamConnection: Sleeper {
    func awaken(_ reason: WakeReason) {
        if link.isClosed { return }
        if state.loop.now >= closesAt { return link.close() }
        link.readAll()
        if link.isClosed { return }
        link.resumeSending()
        linkMoved()
    }
}
