internal import Attestation
internal import Policy

/// Labels for verdicts, reasons and actions.
///
/// The vocabulary is small and closed, so a place is computed instead of looked up.
enum VerdictLabels {
    /// Verdict and reason by row. Row 0 is a request that ended before there was a verdict.
    static let rows: [(verdict: String, reason: String)] =
        [("", ""), ("verified", "")]
        + MissingReason.allCases.map { ("missing", $0.rawValue) }
        + [("attestation_failed", "")]
        + InvalidReason.allCases.map { ("invalid", $0.rawValue) }
        + [("app_not_allowed", ""), ("not_limited_use", ""), ("reused", "")]
        + UnavailableReason.allCases.map { ("unavailable", $0.rawValue) }
        + [("exempt", "")]

    /// Actions by column. Column 0 is a request that policy was not asked about.
    static let columns = ["", "allow", "would_reject", "reject"]

    /// The row of a verdict.
    static func row(of verdict: Verdict?) -> Int {
        switch verdict {
        case nil: 0
        case .verified: 1
        case .missing(.outdatedClient): 2
        case .missing(.unknownOrigin): 3
        case .attestationFailed: 4
        case .invalid(let reason): 5 + index(of: reason)
        case .appNotAllowed: 17
        case .notLimitedUse: 18
        case .reused: 19
        case .unavailable(.keys): 20
        case .unavailable(.replayStore): 21
        case .unavailable(.verificationLimit): 22
        case .exempt: 23
        }
    }

    /// The column of an action.
    static func column(of action: Action?) -> Int {
        switch action {
        case nil: 0
        case .allow: 1
        case .wouldReject: 2
        case .reject: 3
        }
    }

    private static func index(of reason: InvalidReason) -> Int {
        switch reason {
        case .malformed: 0
        case .duplicate: 1
        case .inURL: 2
        case .algorithm: 3
        case .unknownKey: 4
        case .signature: 5
        case .issuer: 6
        case .audience: 7
        case .subject: 8
        case .expired: 9
        case .notYetValid: 10
        case .lifetime: 11
        }
    }
}
