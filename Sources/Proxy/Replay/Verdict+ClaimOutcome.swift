internal import Attestation
public import Policy
public import Replay

extension Verdict {
    /// What a verified token is, after what the claim store said of it.
    public init(_ outcome: ClaimOutcome) {
        self =
            switch outcome {
            case .claimed: .verified
            case .reused: .reused
            case .predates, .full, .unavailable: .unavailable(.replayStore)
            case .expired: .invalid(.expired)
            case .refused: .invalid(.signature)
            case .unsupported: .notLimitedUse
            }
    }
}
