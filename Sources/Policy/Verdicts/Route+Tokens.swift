public import Attestation

/// Whether a route accepts the app that a verified token was issued for.
public enum AppAcceptance: Sendable {
    case accepted
    /// The route lists projects, and the token's is not among them.
    case projectNotListed
    /// The route lists apps, and the token's is not among them, or has no alias.
    case appNotListed
}

extension Route {
    /// What a token comes to on this route: the last rule, behind signature and claims, is whether
    /// its app may call here.
    public func verdict(of token: TokenVerdict) -> Verdict {
        switch token {
        case .verified(let verified): verdict(of: verified)
        case .attestationFailed: .attestationFailed
        case .invalid(let reason): .invalid(reason)
        case .debugSecret: .invalid(.malformed)
        case .keysUnavailable: .unavailable(.keys)
        case .unknownKey: .invalid(.unknownKey)
        case .notAdmitted: .unavailable(.verificationLimit)
        }
    }

    /// What a verified token comes to on this route: `verified` or `appNotAllowed`.
    public func verdict(of token: VerifiedToken) -> Verdict {
        acceptance(of: token) == .accepted ? .verified : .appNotAllowed
    }

    /// Whether this route accepts the token's app. A token of a project that the route does not
    /// list is no better than one of an app that it does not list.
    public func acceptance(of token: VerifiedToken) -> AppAcceptance {
        if let projects, !projects.contains(token.project) { return .projectNotListed }
        guard let apps else { return .accepted }
        guard let app = token.app else { return .appNotListed }
        return apps.contains(AppIndex(project: token.project, app: app)) ? .accepted : .appNotListed
    }
}
