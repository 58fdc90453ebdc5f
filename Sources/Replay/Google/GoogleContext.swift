internal import HTTP
internal import Reactor

/// What the sessions of all loops share.
final class GoogleContext: Sendable {
    let settings: GoogleSettings
    let origin: HTTPOrigin
    let tokens: AccessTokens
    let keeper: AccessTokenKeeper
    let breaker = CircuitBreaker()
    let patience: Patience
    let notices: GoogleNotices

    init(
        settings: GoogleSettings, account: ServiceAccount, intervals: AccessTokenKeeper.Intervals,
        events: @escaping @Sendable (StoreEvent) -> Void
    ) throws(StoreOpenError) {
        self.settings = settings
        patience = Patience(settings.patience)
        let notices = GoogleNotices(events: events)
        let tokens = AccessTokens()
        self.notices = notices
        self.tokens = tokens
        origin = HTTPOrigin(
            try Self.url(settings.url), trust: settings.trust, egressProxy: settings.egressProxy)
        do throws(Errno) {
            keeper = try AccessTokenKeeper(
                account, settings: settings, tokens: tokens, notices: notices,
                intervals: intervals)
        } catch {
            throw StoreOpenError(
                "no event loop for Google's access tokens: \(error)",
                hint: "raise this process's limit of open files")
        }
    }

    private static func url(_ text: String) throws(StoreOpenError) -> HTTPURL {
        let url: HTTPURL
        do throws(HTTPURLError) {
            url = try HTTPURL(text)
        } catch {
            throw StoreOpenError(
                "the URL of Google's replay protection \(error)",
                hint: "the usual one is \(GoogleSettings.defaultURL)")
        }
        if !url.isSecure && !url.isLoopback {
            throw StoreOpenError(
                "the URL of Google's replay protection is not https",
                hint: "plain http is for loopback addresses")
        }
        return url
    }

    deinit {
        keeper.stop()
    }
}

extension StoreFailure {
    /// What became of a request that failed on the way. From `send` on the service may have done
    /// what it was asked.
    init(_ error: HTTPClientError) {
        switch (error.cause, error.phase) {
        case (.crowded, _): self = .overloaded
        case (_, .resolve), (_, .connect), (_, .proxy), (.timedOut, .tls): self = .unreachable
        case (_, .tls): self = .tls
        case (.timedOut, _): self = .timeout
        case (.disconnected, _), (.exhausted, _), (.cancelled, _): self = .disconnected
        case (.answer, _), (.other, _): self = .protocolError
        }
    }
}
