internal import HTTP
internal import Reactor
internal import TLS

/// One HTTP/2 connection to a server of an upstream, which many requests share.
final class HTTP2UpstreamConnection {
    private static let closingTime = Duration.seconds(1)
    /// A request that was given up says something about the connection when nothing at all came for
    /// this long.
    private static let suspiciousSilence = Duration.seconds(1)

    private let link: HTTP2Link
    private let state: LoopState
    private let waiter: Waiter
    private let idleNanoseconds: Int64
    private let patience: Int64
    /// When the server has to have shown a sign of life.
    private var pongDueAt = MonotonicInstant.never
    private var idleSince: MonotonicInstant
    private var closesAt = MonotonicInstant.never
    private var isRetired = false
    private var hasEnded = false
    private var wasGreeted = false
    /// Called when the server said how many requests it takes at once.
    private let onGreeting: () -> Void
    /// Called once, when no request can begin on it any more.
    private let onEnd: (HTTP2UpstreamConnection) -> Void

    /// Takes over a connected transport. Nil without memory.
    ///
    /// - Parameters:
    ///   - idleNanoseconds: How long it may lie idle.
    ///   - patience: Nanoseconds that a server has to show that it is there.
    init?(
        _ transport: any Transport, idleNanoseconds: Int64, patience: Int64, state: LoopState,
        onGreeting: @escaping () -> Void, onEnd: @escaping (HTTP2UpstreamConnection) -> Void
    ) {
        guard
            let link = try? HTTP2Link(
                transport, role: .client, limits: .upstream, state: state)
        else { return nil }
        self.link = link
        self.state = state
        self.idleNanoseconds = idleNanoseconds
        self.patience = patience
        self.onGreeting = onGreeting
        self.onEnd = onEnd
        waiter = Waiter(loop: state.loop)
        idleSince = state.loop.now
        transport.waiter = waiter
        link.owner = self
        // Servers refuse requests whose scheme is not that of their connection.
        link.session.isSecure = transport is TLSTransport
        link.session.onCapacity = { [unowned self] in capacityChanged() }
        sleep()
    }

    /// A stream for a request; nil when the connection takes no more now.
    func openStream() -> HTTP2Stream? {
        isRetired || hasEnded || pongDueAt != .never ? nil : link.session.openStream()
    }

    /// The server did not say yet how many requests it takes at once: what it never allowed it may
    /// take for an attack.
    var isGreeting: Bool { !hasEnded && !isRetired && !link.session.isGreeted }

    /// A server that went without a word answers nothing, and a connection that others share must
    /// not be where their requests end, too.
    private func capacityChanged() {
        if link.session.isGreeted && !wasGreeted {
            wasGreeted = true
            onGreeting()
        }
        let now = state.loop.now
        if pongDueAt != .never || now < link.lastRead.advanced(by: Self.suspiciousSilence) {
            return
        }
        pongDueAt = now.advanced(byNanoseconds: patience)
        link.session.ping()
    }

    /// Takes no more requests, and closes when those under way are over.
    func retire() {
        isRetired = true
        endIfIdle()
    }

    private func sleep() {
        if link.session.hasStreams { idleSince = state.loop.now }
        let idle = link.session.hasStreams ? MonotonicInstant.never : idleDeadline
        waiter.sleep(self, until: min(idle, closesAt, pongDueAt, stallDeadline))
    }

    /// The server has to have read something of what waits by then.
    private var stallDeadline: MonotonicInstant {
        link.stalledSince?.advanced(byNanoseconds: idleNanoseconds) ?? .never
    }

    private var idleDeadline: MonotonicInstant {
        idleSince.advanced(byNanoseconds: idleNanoseconds)
    }

    private func endIfIdle() {
        if link.isClosed { return }
        if link.session.isGoingAway || link.hasFailed { end() }
        if link.hasFailed { return endFailed() }
        let isUnwanted = isRetired || hasEnded || state.loop.now >= idleDeadline
        if link.session.hasStreams || !isUnwanted { return }
        end()
        if closesAt == .never {
            link.session.finishShutdown()
            closesAt = state.loop.now.advanced(by: Self.closingTime)
        }
        if link.isFlushed { link.close() }
    }

    /// The server broke the rules, and nothing more will be read of it: whoever waits for an answer is
    /// told so now. What says why goes out first, if the server takes it.
    private func endFailed() {
        if closesAt == .never { closesAt = state.loop.now.advanced(by: Self.closingTime) }
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

    func linkHasMore() {
        link.readAll()
        linkMoved()
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
        let now = state.loop.now
        if now >= closesAt || now >= stallDeadline { return link.close() }
        link.readAll()
        if link.isClosed { return }
        if link.lastRead == now { pongDueAt = .never }
        if now >= pongDueAt { return link.close() }
        link.resumeSending()
        linkMoved()
    }
}
