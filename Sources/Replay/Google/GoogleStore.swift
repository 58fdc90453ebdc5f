public import Reactor
internal import TLS

/// The claims that Google keeps (`projects.verifyAppCheckToken`), for those who share tokens with
/// services that ask there too. docs/decisions/0053-google-store.md says what it costs and cannot
/// do.
///
/// A claim needs `Claim.token` and `Claim.project`; `release` never succeeds.
public final class GoogleStore: ClaimStore {
    private let context: GoogleContext

    /// Reads and checks the key file. Asks nobody: access tokens are fetched in the background from
    /// the first session on.
    ///
    /// - Parameter events: Called on any thread. Never gets a key or a token.
    /// - Throws: what is wrong with the key file, the URL or the file of certificates.
    public static func open(
        settings: GoogleSettings, events: @escaping @Sendable (StoreEvent) -> Void
    ) throws(StoreOpenError) -> GoogleStore {
        try open(settings: settings, intervals: .init(), events: events)
    }

    /// As the public one, with other intervals for tests.
    static func open(
        settings: GoogleSettings, intervals: AccessTokenKeeper.Intervals,
        events: @escaping @Sendable (StoreEvent) -> Void
    ) throws(StoreOpenError) -> GoogleStore {
        if settings.authority != nil {
            do throws(TLSError) {
                _ = try TLSContext.client(trust: settings.trust)
            } catch {
                throw StoreOpenError(
                    "the certificates for Google's replay protection: \(error.detail)",
                    hint: "check \"ca\" in google")
            }
        }
        let account = try ServiceAccount.read(file: settings.credentials)
        return GoogleStore(
            try GoogleContext(
                settings: settings, account: account, intervals: intervals, events: events))
    }

    private init(_ context: GoogleContext) {
        self.context = context
    }

    public var name: StaticString { "google" }
    public var needsToken: Bool { true }
    public var isRemote: Bool { true }
    /// Google has kept its claims all along.
    public var reliableSince: Int64 { 0 }

    public func adopt(patience: Duration) {
        context.patience.adopt(patience)
    }

    public var statistics: StoreStatistics {
        StoreStatistics(breaker: context.breaker.state(at: .now))
    }

    public func makeSession(on loop: EventLoop) -> any ClaimSession {
        context.keeper.start()
        return GoogleSession(context, loop: loop)
    }

    /// Google forgets by itself.
    public func purge(at now: ClaimInstant) -> Bool { false }
}
