internal import Configuration
public import Reactor

/// How an upstream is, as one loop sees it: for `portcullis status`.
public struct LoopUpstreamStatus: Sendable {
    /// One of its servers.
    public struct Server: Sendable {
        /// The address as text.
        public var label: String
        /// It gets no new requests, because an operator said so.
        public var isDraining: Bool
        /// Its checks say that it works, or nobody checks it.
        public var passesChecks: Bool
        /// This loop leaves it alone until then; nil when it does not.
        public var ejectedUntil: MonotonicInstant?
        /// How much of its part it gets after it was away, up to 1.
        public var share: Double
        /// Requests that are under way on it, WebSockets included.
        public var activeCount: Int
        /// Connections that nobody uses, or that requests share.
        public var idleCount: Int
        /// How a request on it failed last, and when.
        public var lastFailure: RequestFailure?
        public var lastFailureAt: MonotonicInstant?
    }

    /// The name in the configuration.
    public var name: String
    /// Requests that wait until a server takes them.
    public var waitingCount: Int
    /// Too few servers are available, so requests go to all of them.
    public var isPanicking: Bool
    /// In the order of its addresses.
    public var servers: [Server]

    /// The status of a pool.
    init(_ pool: UpstreamPool, at now: MonotonicInstant) {
        name = pool.upstream.name
        waitingCount = pool.line.count
        isPanicking = pool.wouldPanic(at: now)
        servers = pool.servers.map { server in
            let health = server.health
            return Server(
                label: server.label, isDraining: server.isDraining,
                passesChecks: health.passesChecks,
                ejectedUntil: health.ejectedUntil > now ? health.ejectedUntil : nil,
                share: health.share(at: now, slowStart: pool.upstream.slowStart.nanoseconds),
                activeCount: server.activeCount,
                idleCount: server.idle.count + server.shared.count,
                lastFailure: server.lastFailure?.reason, lastFailureAt: server.lastFailure?.at)
        }
    }
}
