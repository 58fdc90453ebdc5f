public import Attestation

/// Why a request without a token has none, as far as its other fields tell. For metrics only, never
/// for admission (pitfalls H9, M6).
public enum MissingReason: String, Sendable, CaseIterable {
    /// It looks like a build of one of our apps from before App Check.
    case outdatedClient = "outdated_client"
    case unknownOrigin = "unknown_origin"
}

/// Why nobody can say what the token is.
public enum UnavailableReason: String, Sendable, CaseIterable {
    case keys
    case replayStore = "replay_store"
    /// So many bad tokens came from the client's network that no signature is computed for it now.
    case verificationLimit = "verification_limit"
}

/// What the proxy thinks of a request's token: the one vocabulary of logs, metrics, upstream fields
/// and API.
public enum Verdict: Sendable, Equatable {
    case verified
    case missing(MissingReason)
    case attestationFailed
    case invalid(InvalidReason)
    case appNotAllowed
    case notLimitedUse
    case reused
    case unavailable(UnavailableReason)
    /// A preflight, or a route with `app_check = "off"`.
    case exempt

    /// The word for logs, metrics and `X-AppCheck-Verdict`.
    public var word: StaticString {
        switch self {
        case .verified: "verified"
        case .missing: "missing"
        case .attestationFailed: "attestation_failed"
        case .invalid: "invalid"
        case .appNotAllowed: "app_not_allowed"
        case .notLimitedUse: "not_limited_use"
        case .reused: "reused"
        case .unavailable: "unavailable"
        case .exempt: "exempt"
        }
    }

    /// The word for `X-AppCheck-Reason`, or nil where the verdict says it all.
    public var reason: String? {
        switch self {
        case .missing(let reason): reason.rawValue
        case .invalid(let reason): reason.rawValue
        case .unavailable(let reason): reason.rawValue
        default: nil
        }
    }
}

/// What is done with a request.
public enum Action: String, Sendable, CaseIterable {
    case allow
    /// Forwarded, although it would be rejected where the route is enforced.
    case wouldReject = "would_reject"
    case reject
}
