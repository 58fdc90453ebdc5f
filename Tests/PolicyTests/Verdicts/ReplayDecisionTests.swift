import Attestation
import Policy
import Testing

@Suite("What policy does with a token's second use")
struct ReplayDecisionTests {
    typealias Mode = Route.Mode

    /// Verdicts that `replay` decides about, not `app_check`.
    static let aboutReplay: [(Verdict, RejectionCode)] = [
        (.reused, .tokenAlreadyUsed), (.notLimitedUse, .limitedUseRequired),
        (.unavailable(.replayStore), .verificationUnavailable),
    ]

    /// app_check, replay, and what becomes of a request in the enforced share and outside it.
    static let table: [(Mode, Mode, inside: Action, outside: Action)] = [
        (.off, .off, .allow, .allow), (.off, .monitor, .allow, .allow),
        (.off, .enforce, .allow, .allow),
        (.monitor, .off, .allow, .allow), (.monitor, .monitor, .wouldReject, .wouldReject),
        (.monitor, .enforce, .wouldReject, .wouldReject),
        (.enforce, .off, .allow, .allow), (.enforce, .monitor, .wouldReject, .wouldReject),
        (.enforce, .enforce, .reject, .wouldReject),
    ]

    @Test(
        "R15, R6: the route's replay decides about use, and is never stricter than app_check",
        arguments: table)
    func modes(appCheck: Mode, replay: Mode, inside: Action, outside: Action) {
        let enforcement = Enforcement(appCheck: appCheck, replay: replay)
        for (verdict, code) in Self.aboutReplay {
            let (action, rejection) = outcome(enforcement, verdict, true)
            #expect(action == inside, "\(verdict)")
            #expect(rejection == (inside == .reject ? code : nil), "\(verdict)")
            #expect(outcome(enforcement, verdict, false).action == outside, "\(verdict)")
        }
    }

    @Test("M1, R15: a monitored replay rejects nothing that app_check does not", arguments: table)
    func otherVerdicts(appCheck: Mode, replay: Mode, inside: Action, outside: Action) {
        let enforcement = Enforcement(appCheck: appCheck, replay: replay)
        let without = Enforcement(appCheck: appCheck)
        let others: [Verdict] = [
            .verified, .exempt, .missing(.unknownOrigin), .attestationFailed, .appNotAllowed,
            .invalid(.signature), .invalid(.expired), .unavailable(.keys),
        ]
        for verdict in others {
            for isInside in [true, false] {
                let (action, code) = outcome(enforcement, verdict, isInside)
                let expected = outcome(without, verdict, isInside)
                #expect(action == expected.action, "\(verdict)")
                #expect(code == expected.code, "\(verdict)")
            }
        }
    }

    @Test("R11: with \"allow\", a store that is away allows, and nothing else changes")
    func whenUnavailable() {
        for (appCheck, replay, inside, outside) in Self.table {
            let lenient = Enforcement(
                appCheck: appCheck, replay: replay, whenUnavailable: .allow)
            for isInside in [true, false] {
                let away = outcome(lenient, .unavailable(.replayStore), isInside)
                #expect(away.action == .allow)
                #expect(away.code == nil)
                let expected = isInside ? inside : outside
                #expect(outcome(lenient, .reused, isInside).action == expected)
                #expect(outcome(lenient, .notLimitedUse, isInside).action == expected)
            }
            let noKeys = outcome(lenient, .unavailable(.keys), true)
            #expect((noKeys.action == .reject) == (appCheck == .enforce))
        }
    }

    @Test("R11: a closed route answers 503 for a store that is away, never 401")
    func closed() {
        let closed = Enforcement(appCheck: .enforce, replay: .enforce)
        let (action, code) = outcome(closed, .unavailable(.replayStore), true)
        #expect(action == .reject)
        #expect(code?.status == 503)
    }

    @Test("R11: a route's own when_unavailable goes before that of the store")
    func ownRule() {
        var route = route("r", "/*", mode: .enforce)
        route.replay = .enforce
        #expect(route.enforcement(storeDefault: .allow).whenUnavailable == .allow)
        #expect(route.enforcement(storeDefault: .reject).whenUnavailable == .reject)
        route.whenUnavailable = .reject
        #expect(route.enforcement(storeDefault: .allow).whenUnavailable == .reject)
        route.whenUnavailable = .allow
        #expect(route.enforcement(storeDefault: .reject).whenUnavailable == .allow)
    }

    private func outcome(
        _ enforcement: Enforcement, _ verdict: Verdict, _ isInside: Bool
    ) -> (action: Action, code: RejectionCode?) {
        switch enforcement.decide(verdict, isInShare: { isInside }) {
        case .forward(let permit): (permit.action, nil)
        case .reject(let code): (.reject, code)
        }
    }
}
