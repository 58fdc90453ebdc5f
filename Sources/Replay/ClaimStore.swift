public import Reactor

/// Which tokens were spent. One for the process; each event loop asks through its own session.
public protocol ClaimStore: Sendable {
    /// The word of the configuration, for logs and labels: "memory", "file", "redis", "google".
    var name: StaticString { get }
    /// `Claim.token` and `Claim.project` have to be there.
    var needsToken: Bool { get }
    /// A claim may take a round trip over a network.
    var isRemote: Bool { get }
    /// A second, since 1970, from which on the store can vouch for tokens: those issued earlier are
    /// answered with `predates`. A service that starts waits until then before it accepts requests.
    var reliableSince: Int64 { get }

    /// How a loop asks. Called on that loop, once.
    func makeSession(on loop: EventLoop) -> any ClaimSession

    /// Forgets what has expired: a bounded piece of work, off the request path.
    ///
    /// - Returns: whether there is more to do at once.
    func purge(at now: ClaimInstant) -> Bool

    /// How long an enforced request waits for an answer from now on. A claim that was given less
    /// time, and had no answer, says nothing about the store. Stores that are not remote ignore it.
    func adopt(patience: Duration)

    /// What is in it now.
    var statistics: StoreStatistics { get }
}

extension ClaimStore {
    public func adopt(patience: Duration) {}
}

/// One loop's way to a store. Not thread-safe.
public protocol ClaimSession: AnyObject {
    /// Claims a token: exactly one of all claims of a key, wherever they are made, is `claimed`.
    ///
    /// - Parameters:
    ///   - waiter: Where the calling task sleeps if it has to. It may be woken for other reasons.
    ///   - deadline: When to give up and answer `unavailable(.timeout)`; the claim may have been
    ///     made then. Stores that are not remote ignore it.
    nonisolated(nonsending)
        func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome

    /// Takes a claim back that this session was answered `claimed` or `predates` for, because
    /// provably nothing of the request reached the backend.
    ///
    /// - Returns: whether the token can be used again; false when that is not sure.
    nonisolated(nonsending)
        func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool

    /// What `claim` would answer, without claiming; nil when the store cannot tell. For `explain`.
    nonisolated(nonsending)
        func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome?

    /// Connects, so that the first claim need not wait for it. Returns when the store can be asked,
    /// when that failed, or at `deadline`.
    nonisolated(nonsending)
        func warmUp(waiter: Waiter, until deadline: MonotonicInstant) async

    /// The loop ends.
    func close()
}

extension ClaimSession {
    // Stores of this machine are always there.
    nonisolated(nonsending)
        public func warmUp(waiter: Waiter, until deadline: MonotonicInstant) async
    {}
}

/// What a store holds, and how it is.
public struct StoreStatistics: Sendable, Equatable {
    /// Claims that are remembered; nil where only the server knows.
    public var entries: Int?
    /// Claims that may be remembered at most.
    public var entryLimit: Int?
    /// Bytes that they take: memory or disk.
    public var bytes: Int?
    /// Bytes that they may take at most.
    public var byteLimit: Int?
    /// The circuit breaker; nil where there is none.
    public var breaker: BreakerState?

    public init(
        entries: Int? = nil, entryLimit: Int? = nil, bytes: Int? = nil, byteLimit: Int? = nil,
        breaker: BreakerState? = nil
    ) {
        self.entries = entries
        self.entryLimit = entryLimit
        self.bytes = bytes
        self.byteLimit = byteLimit
        self.breaker = breaker
    }
}

/// What a circuit breaker does with claims.
public enum BreakerState: String, Sendable, CaseIterable {
    /// Passes them on.
    case closed
    /// Passes one on, to see.
    case halfOpen = "half_open"
    /// Answers them itself: the store failed again and again.
    case open
}

/// Something that operators should know of a store. Never a key, a token or a password.
public struct StoreEvent: Sendable {
    public enum Severity: Sendable { case error, warning, info, debug }

    public var severity: Severity
    /// A sentence for the log.
    public var message: String
    /// What goes with it: where, why, and what to do.
    public var fields: [(name: String, value: String)]

    public init(
        _ severity: Severity, _ message: String, _ fields: [(name: String, value: String)] = []
    ) {
        self.severity = severity
        self.message = message
        self.fields = fields
    }
}
