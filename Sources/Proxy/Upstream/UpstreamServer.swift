internal import Reactor
internal import TLS

/// One server of an upstream as one loop sees it.
final class UpstreamServer {
    /// A connection that nobody uses.
    struct IdleConnection {
        /// Its last answer was read to the end.
        let socket: any Transport
        /// When it became idle.
        let since: MonotonicInstant
    }

    /// One resolved address.
    let address: SocketAddress
    /// The address as text: in logs, in metrics, and what makes two servers the same.
    let label: String
    /// The same for consistent hashing.
    let hash: UInt64
    /// Whether it works, as far as this loop knows.
    var health = ServerHealth()
    /// It is not among the servers of the newest configuration: no connection is kept.
    var isRetired = false
    /// An operator took it out of service: what it does it may finish.
    private(set) var isDraining = false
    /// How a request on it failed last, and when.
    var lastFailure: (reason: RequestFailure, at: MonotonicInstant)?
    /// Whether the log says that it fails.
    var notice = OutageNotice()
    /// Requests that are under way on it, from this loop.
    var activeCount = 0
    /// Its idle connections; the one that was used last is the last.
    var idle: [IdleConnection] = []
    /// What a new connection with TLS can go on with.
    let sessions = TLSResumption()
    /// Connections that many requests share.
    var shared: [HTTP2UpstreamConnection] = []
    /// A request is opening one of these, and others wait for it.
    var isConnecting = false
    var waiting: [Waiter] = []
    /// A server that refused a connection is asked again only after this, unless there is no other.
    var avoidedUntil = MonotonicInstant(nanoseconds: 0)

    /// A server that nothing is known about yet.
    init(address: SocketAddress) {
        self.address = address
        label = address.description
        hash = RendezvousHash.hash(label.utf8)
    }

    /// Those who wait for a shared connection look again.
    func wakeWaiting() {
        let waiters = waiting
        waiting.removeAll()
        for waiter in waiters { waiter.wake() }
    }

    /// No connection to it is kept.
    var keepsNothing: Bool { isRetired || isDraining }

    /// Closes what lies idle and keeps nothing more.
    func retire() {
        isRetired = true
        closeIdle()
    }

    /// An operator took it out of service, or back.
    func adopt(isDraining: Bool, at now: MonotonicInstant) {
        if isDraining == self.isDraining { return }
        self.isDraining = isDraining
        if isDraining { closeIdle() } else { health.cameBack(at: now) }
    }

    private func closeIdle() {
        for connection in idle { connection.socket.close() }
        idle.removeAll()
        let shared = shared
        for connection in shared { connection.retire() }
    }
}
