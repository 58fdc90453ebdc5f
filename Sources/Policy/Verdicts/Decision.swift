internal import Attestation

/// Proof that policy let a request through. Forwarding asks for one, and only this module can make
/// it.
public struct Permit: Sendable {
    /// `allow` or `wouldReject`.
    public let action: Action

    fileprivate init(action: Action) {
        self.action = action
    }
}

/// What policy says about one request.
public enum Decision: Sendable {
    case forward(Permit)
    case reject(RejectionCode)
}

extension Enforcement {
    /// Decides about a request from what was found out; pure.
    ///
    /// - Parameters:
    ///   - verdict: What the token is.
    ///   - isInShare: Whether this client is in the enforced share; asked only when it matters.
    public func decide(_ verdict: Verdict, isInShare: () -> Bool) -> Decision {
        guard let code = verdict.rejectionCode else { return .forward(Permit(action: .allow)) }
        if verdict == .unavailable(.replayStore), whenUnavailable == .allow {
            return .forward(Permit(action: .allow))
        }
        switch verdict.isAboutReplay ? replay : appCheck {
        case .off: return .forward(Permit(action: .allow))
        case .monitor: return .forward(Permit(action: .wouldReject))
        case .enforce:
            return isInShare() ? .reject(code) : .forward(Permit(action: .wouldReject))
        }
    }
}

extension Verdict {
    /// The code that an enforced route answers with, or nil when the request may pass.
    public var rejectionCode: RejectionCode? {
        switch self {
        case .verified, .exempt: nil
        case .missing: .tokenMissing
        case .attestationFailed: .attestationFailed
        case .invalid(.expired): .tokenExpired
        case .invalid(.inURL): .tokenInURL
        case .invalid: .tokenInvalid
        case .appNotAllowed: .appNotAllowed
        case .notLimitedUse: .limitedUseRequired
        case .reused: .tokenAlreadyUsed
        case .unavailable(.verificationLimit): .verificationLimited
        case .unavailable(.keys), .unavailable(.replayStore): .verificationUnavailable
        }
    }

    /// Whether the route's `replay` decides what happens, not its `app_check`.
    fileprivate var isAboutReplay: Bool {
        switch self {
        case .notLimitedUse, .reused, .unavailable(.replayStore): true
        case .verified, .missing, .attestationFailed, .invalid, .appNotAllowed,
            .unavailable(.keys), .unavailable(.verificationLimit), .exempt:
            false
        }
    }
}
