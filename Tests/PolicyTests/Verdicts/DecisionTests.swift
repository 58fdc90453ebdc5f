import Attestation
import Policy
import Testing

@Suite("What policy does with a verdict")
struct DecisionTests {
    static let verdicts: [Verdict] =
        [.verified, .attestationFailed, .appNotAllowed, .notLimitedUse, .reused, .exempt]
        + MissingReason.allCases.map { .missing($0) } + InvalidReason.allCases.map { .invalid($0) }
        + UnavailableReason.allCases.map { .unavailable($0) }

    /// The answer of an enforced route; nil lets the request pass.
    static func code(_ verdict: Verdict) -> RejectionCode? {
        switch verdict {
        case .verified, .exempt: nil
        case .missing(.outdatedClient), .missing(.unknownOrigin): .tokenMissing
        case .attestationFailed: .attestationFailed
        case .appNotAllowed: .appNotAllowed
        case .notLimitedUse: .limitedUseRequired
        case .reused: .tokenAlreadyUsed
        case .unavailable(.keys), .unavailable(.replayStore): .verificationUnavailable
        case .unavailable(.verificationLimit): .verificationLimited
        case .invalid(.expired): .tokenExpired
        case .invalid(.inURL): .tokenInURL
        case .invalid: .tokenInvalid
        }
    }

    @Test(
        "M1: monitor never rejects, whatever the verdict and whoever the client",
        arguments: verdicts)
    func monitor(verdict: Verdict) {
        for isInside in [true, false] {
            let outcome = outcome(.monitor, verdict, isInside)
            #expect(outcome.action == (Self.code(verdict) == nil ? .allow : .wouldReject))
            #expect(outcome.code == nil)
        }
    }

    @Test("a route that is off allows everything", arguments: verdicts)
    func off(verdict: Verdict) {
        for isInside in [true, false] {
            #expect(outcome(.off, verdict, isInside).action == .allow)
        }
    }

    @Test("enforce rejects inside the share, and would outside it", arguments: verdicts)
    func enforce(verdict: Verdict) {
        let code = Self.code(verdict)
        #expect(outcome(.enforce, verdict, true).action == (code == nil ? .allow : .reject))
        #expect(outcome(.enforce, verdict, true).code == code)
        #expect(outcome(.enforce, verdict, false).action == (code == nil ? .allow : .wouldReject))
        #expect(outcome(.enforce, verdict, false).code == nil)
    }

    @Test(
        "M3: the share is asked only where it decides, and never changes what a client may",
        arguments: verdicts)
    func shareIsAskedLate(verdict: Verdict) {
        for mode in Route.Mode.allCases {
            var asked = 0
            _ = Enforcement(appCheck: mode, replay: mode).decide(verdict) {
                asked += 1
                return true
            }
            #expect(asked == (mode == .enforce && Self.code(verdict) != nil ? 1 : 0))
        }
    }

    @Test("H9: what a client says that it is never lets it through")
    func fingerprintsAdmitNobody() {
        for mode in Route.Mode.allCases {
            for isInside in [true, false] {
                let outdated = outcome(mode, .missing(.outdatedClient), isInside)
                let unknown = outcome(mode, .missing(.unknownOrigin), isInside)
                #expect(outdated.action == unknown.action)
                #expect(outdated.code == unknown.code)
            }
        }
    }

    @Test("M7: verdicts, reasons and actions are words of a fixed set")
    func words() {
        let words = Set(Self.verdicts.map { "\($0.word)" })
        #expect(
            words == [
                "verified", "missing", "attestation_failed", "invalid", "app_not_allowed",
                "not_limited_use", "reused", "unavailable", "exempt",
            ])
        #expect(
            Set(Self.verdicts.compactMap(\.reason)) == [
                "outdated_client", "unknown_origin", "malformed", "duplicate", "in_url",
                "algorithm",
                "unknown_key", "signature", "issuer", "audience", "subject", "expired",
                "not_yet_valid", "lifetime", "keys", "replay_store", "verification_limit",
            ])
        #expect(Action.allCases.map(\.rawValue) == ["allow", "would_reject", "reject"])
        for verdict in Self.verdicts {
            let hasReasons = ["missing", "invalid", "unavailable"].contains("\(verdict.word)")
            #expect((verdict.reason != nil) == hasReasons)
        }
    }

    private func outcome(
        _ mode: Route.Mode, _ verdict: Verdict, _ isInside: Bool
    ) -> (action: Action, code: RejectionCode?) {
        switch Enforcement(appCheck: mode, replay: mode).decide(verdict, isInShare: { isInside }) {
        case .forward(let permit): (permit.action, nil)
        case .reject(let code): (.reject, code)
        }
    }
}
