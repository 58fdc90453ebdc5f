public import Replay

/// A store as ``ClaimHistory`` drives it: how it is opened, and what may be expected of it.
///
/// ```swift
/// @Test("R4, R12, R13: …", arguments: ClaimHistory.seeds(20))
/// func histories(seed: UInt64) async throws {
///     let subject = ClaimSubject(entryLimit: 12, crash: .forgets) { now in
///         MemoryStore(entryLimit: 12, now: now)
///     }
///     try await ClaimHistory.check(subject, seed: seed)
/// }
/// ```
/// A failure prints its seed; `PORTCULLIS_CLAIM_SEED=17 swift test --filter …` repeats it, and
/// `PORTCULLIS_CLAIM_HISTORIES=1000` runs that many instead.
public struct ClaimSubject: Sendable {
    /// What a crash does to what the store holds.
    public enum Crash: Sendable {
        /// Claims are there again: the file store, a server of its own.
        case remembers
        /// The store begins empty: what is older has to be answered with `predates`.
        case forgets
        /// It is not tested here.
        case isLeftOut
    }

    /// How many claims the store was opened for; nil when `full` never comes. A dozen or two, so
    /// that histories fill it.
    public var entryLimit: Int?
    public var crash: Crash
    /// The store goes by the instants of claims and purges. False for those that go by a clock of
    /// their own (Redis, Google): they get the real time, no steps and no expiry.
    public var followsClock: Bool
    /// Works out when it was made by the clock of each claim: when that says that it was later than
    /// the clock of the time said, tokens of before are `predates`.
    public var noticesLateClock: Bool
    /// `unavailable` is an answer that the test's surroundings may cause. The claim may have been
    /// made then.
    public var mayFail: Bool
    /// `release` works (not with Google).
    public var releases: Bool
    /// `settling` of the store's clock.
    public var settling: Duration
    /// Opens the store; called again after each crash, when all sessions are closed and no
    /// reference to the last store is left. It must not lose claims then unless it `forgets`.
    public var open: @Sendable (ClaimInstant) async throws -> any ClaimStore

    public init(
        entryLimit: Int? = nil, crash: Crash, followsClock: Bool = true,
        noticesLateClock: Bool = false, mayFail: Bool = false,
        releases: Bool = true, settling: Duration = TrustedClock.defaultSettling,
        open: @escaping @Sendable (ClaimInstant) async throws -> any ClaimStore
    ) {
        self.entryLimit = entryLimit
        self.crash = crash
        self.followsClock = followsClock
        self.noticesLateClock = noticesLateClock
        self.mayFail = mayFail
        self.releases = releases
        self.settling = settling
        self.open = open
    }
}
