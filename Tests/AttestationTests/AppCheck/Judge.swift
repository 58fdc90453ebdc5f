import Attestation
import TestKit

/// What the tests compare verdicts by: every case of `TokenVerdict` as one word.
enum Outcome: Equatable, CustomStringConvertible {
    case verified
    case attestationFailed
    case debugSecret
    case keysUnavailable
    case unknownKey
    case notAdmitted
    case invalid(InvalidReason)

    init(_ verdict: TokenVerdict) {
        switch verdict {
        case .verified: self = .verified
        case .attestationFailed: self = .attestationFailed
        case .invalid(let reason): self = .invalid(reason)
        case .debugSecret: self = .debugSecret
        case .keysUnavailable: self = .keysUnavailable
        case .unknownKey: self = .unknownKey
        case .notAdmitted: self = .notAdmitted
        }
    }

    var description: String {
        switch self {
        case .verified: "verified"
        case .attestationFailed: "attestation failed"
        case .debugSecret: "debug secret"
        case .keysUnavailable: "keys unavailable"
        case .unknownKey: "unknown key"
        case .notAdmitted: "not admitted"
        case .invalid(let reason): "invalid: \(reason.rawValue)"
        }
    }
}

/// Judges a token with the standard project and key set, and checks on the way that `explain`
/// agrees with the verdict and never tells the token.
func judge(
    _ token: String, now: Int64 = TestIssuer.now, projects: [Project] = [TestIssuer.project],
    keySet: KeySet? = TestIssuer.standard.keySet
) -> Outcome {
    let verifier = TokenVerifier(projects: projects)
    let bytes = Array(token.utf8)
    let verdict = verifier.verify(bytes.span, now: now) { _ in keySet }
    let steps = verifier.explain(bytes.span, now: now) { _ in keySet }
    let holds = steps.allSatisfy { step in
        if case .holds = step.outcome { true } else { false }
    }
    let outcome = Outcome(verdict)
    precondition(holds == (outcome == .verified), "explain disagrees: \(outcome), \(steps)")
    precondition(
        token.count < 20 || !steps.contains { "\($0)".contains(token) }, "explain tells the token")
    return outcome
}
