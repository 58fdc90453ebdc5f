public import Replay

/// What became of the claim of a token. The raw values are the words of the access log and the
/// label values of `portcullis_replay_claims_total`.
public enum ClaimResult: String, Sendable, CaseIterable {
    case claimed, reused
    /// It was claimed, and taken back because nothing of the request had left for the backend.
    case released
    case predates, expired, full, unavailable, refused, unsupported

    /// The word for what a store said.
    public init(_ outcome: ClaimOutcome) {
        self =
            switch outcome {
            case .claimed: .claimed
            case .reused: .reused
            case .predates: .predates
            case .expired: .expired
            case .full: .full
            case .unavailable: .unavailable
            case .refused: .refused
            case .unsupported: .unsupported
            }
    }
}
