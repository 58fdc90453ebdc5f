public import Reactor

/// The claims that Google keeps (`projects.verifyAppCheckToken`), for those who share tokens with
/// services that ask there too. docs/decisions/0053-google-store.md says what it costs and cannot
/// do.
///
/// A claim needs `Claim.token` and `Claim.project`; `release` never succeeds.
public final class GoogleStore: ClaimStore {
    /// Reads and checks the key file. Asks nobody: access tokens are fetched in the background from
    /// the first session on.
    ///
    /// - Parameter events: Called on any thread.
    /// - Throws: what is wrong with the key file, the URL or the file of certificates.
    public static func open(
        settings: GoogleSettings, events: @escaping @Sendable (StoreEvent) -> Void
    ) throws(StoreOpenError) -> GoogleStore {
        throw StoreOpenError("the store \"google\" is not built yet", hint: "use another one")
    }

    public var name: StaticString { "google" }
    public var needsToken: Bool { true }
    public var isRemote: Bool { true }
    /// Google has kept its claims all along.
    public var reliableSince: Int64 { 0 }
    public var statistics: StoreStatistics { StoreStatistics() }

    public func makeSession(on loop: EventLoop) -> any ClaimSession { GoogleSession() }

    public func purge(at now: ClaimInstant) -> Bool { false }
}

final class GoogleSession: ClaimSession {
    func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome
    { .unavailable(.system) }

    func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool {
        false
    }

    func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome?
    { nil }

    func close() {}
}
