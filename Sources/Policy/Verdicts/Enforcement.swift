/// What happens to a request of a route with replay protection while the claim store cannot answer.
public enum WhenUnavailable: String, Sendable, CaseIterable {
    /// It is answered 503 `verification_unavailable`.
    case reject
    /// It is forwarded, and counted.
    case allow
}

/// How strictly a route takes each kind of verdict.
public struct Enforcement: Sendable, Equatable {
    /// What a token is: `app_check`.
    public let appCheck: Route.Mode
    /// How often it was used: `replay`, never stricter than `appCheck`.
    public let replay: Route.Mode
    /// What holds while the claim store cannot answer.
    public let whenUnavailable: WhenUnavailable

    /// An enforcement. `replay` is taken down to `appCheck` where it is stricter: a token whose
    /// verdict decides nothing cannot be refused for its second use.
    public init(
        appCheck: Route.Mode, replay: Route.Mode = .off, whenUnavailable: WhenUnavailable = .reject
    ) {
        self.appCheck = appCheck
        self.replay = min(replay, appCheck)
        self.whenUnavailable = whenUnavailable
    }

    /// For what the claim store says: its word counts for as much as `replay` says, even where it is
    /// about the token itself, as `expired` is (pitfall R15).
    public var ofClaims: Enforcement {
        Enforcement(appCheck: replay, replay: replay, whenUnavailable: whenUnavailable)
    }
}

extension Route {
    /// How strictly this route takes verdicts.
    ///
    /// - Parameter storeDefault: `when_unavailable` of `[replay]`, for a route without its own.
    public func enforcement(storeDefault: WhenUnavailable) -> Enforcement {
        Enforcement(
            appCheck: mode, replay: replay, whenUnavailable: whenUnavailable ?? storeDefault)
    }
}
