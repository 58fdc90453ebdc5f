internal import Replay

/// A store broke a rule, and how it came to that.
public struct ClaimViolation: Error, CustomStringConvertible {
    /// What to put into `PORTCULLIS_CLAIM_SEED` to see it again.
    public var seed: UInt64
    public var objection: String
    /// The history, the last step last.
    public var log: [String]

    public var description: String {
        """
        \(objection), with PORTCULLIS_CLAIM_SEED=\(seed), after \(log.count) steps:
        \(log.suffix(60).joined(separator: "\n"))
        """
    }
}

/// What the model has against an answer.
struct ClaimObjection: Error {
    var text: String
}

/// What happened so far.
struct ClaimLog {
    private(set) var lines: [String] = []
    private(set) var tally: [String: Int] = [:]

    mutating func note(_ text: String) {
        lines.append(text)
    }

    mutating func answer(_ call: String, _ outcome: ClaimOutcome, _ index: Int, _ claim: Claim) {
        lines.append(
            "\(call) \(index) at \(claim.at.wallSeconds): \(outcome)"
                + " (\(claim.issuedAt)..<\(claim.retainedUntil))")
        tally["\(outcome)", default: 0] += 1
    }
}
