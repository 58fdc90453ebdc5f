import Attestation
import Configuration
import Reactor
import Replay
import TestKit
import Testing

@testable import portcullis

/// A store that says the same whatever it is asked, and remembers what it was asked.
private final class ScriptedClaims: ClaimInspector {
    let inspection: ClaimInspection
    private(set) var claims: [Claim] = []

    init(_ inspection: ClaimInspection) {
        self.inspection = inspection
    }

    func inspect(_ claim: Claim, in configuration: Configuration) -> ClaimInspection {
        claims.append(claim)
        return inspection
    }
}

@Suite("portcullis explain, about tokens that are used once")
struct ExplainReplayTests {
    private static func configuration(_ route: String, replay: String = "") -> String {
        OneRouteFile.text(
            project: "id = \"pid\"\njwks = \"keys.json\"", named: "pay", path: "/pay", route: route,
            more: "[replay]\n\(replay)")
    }

    private static let enforced = "app_check = \"enforce\"\nreplay = \"enforce\""
    private static let monitored = "app_check = \"enforce\"\nreplay = \"monitor\""

    private static let limitedUse = TestIssuer.standard.token(claims: [
        "exp": "\(TestIssuer.now + 240)", "iat": "\(TestIssuer.now - 60)", "jti": "\"once\"",
    ])

    private func explain(
        _ inspection: ClaimInspection = .answered(.claimed), token: String = limitedUse,
        route: String = enforced, replay: String = "", hasKeys: Bool = true
    ) -> (Transcript, ScriptedClaims) {
        let claims = ScriptedClaims(inspection)
        var files = ["proxy.conf": Self.configuration(route, replay: replay)]
        if hasKeys { files["keys.json"] = TestIssuer.keySetJSON(of: [.standard]) }
        let run = Transcript(
            ["explain", "-c", "proxy.conf", "POST", "http://x/pay", "--token", token],
            files: files, claims: claims)
        return (run, claims)
    }

    @Test("says the rule, and that a fresh token would be forwarded")
    func fresh() {
        let (run, _) = explain()
        #expect(run.exitCode == .done)
        #expect(run.text.contains("replay            enforce"))
        #expect(run.text.contains("store             file: /var/lib/portcullis/replay"))
        #expect(run.text.contains("limited_use       tokens that live for 29m at most"))
        #expect(run.text.contains("when_unavailable  reject"))
        #expect(run.text.contains("limited_use ok       5m, limited-use up to 29m"))
        #expect(run.text.contains("claim       ok       store file: fresh, never used"))
        #expect(run.text.contains("verdict     verified"))
        #expect(run.text.contains("action      allow"))
        #expect(run.output.last?.hasSuffix("is forwarded to api") == true)
    }

    /// What the store says, the verdict, and the answer of an enforced route.
    static let outcomes: [(ClaimOutcome, String, String)] = [
        (.reused, "reused", "401 token_already_used"),
        (.predates, "unavailable, reason replay_store", "503 verification_unavailable"),
        (.full, "unavailable, reason replay_store", "503 verification_unavailable"),
        (
            .unavailable(.timeout), "unavailable, reason replay_store",
            "503 verification_unavailable"
        ),
        (.expired, "invalid, reason expired", "401 token_expired"),
        (.unsupported, "not_limited_use", "401 limited_use_required"),
        (.refused, "invalid, reason signature", "401 token_invalid"),
    ]

    @Test("R1, R11: prints the verdict and code that the proxy would give", arguments: outcomes)
    func outcome(outcome: ClaimOutcome, verdict: String, answer: String) {
        let (run, _) = explain(.answered(outcome))
        #expect(run.exitCode == .wrong)
        #expect(run.output.contains { $0.hasPrefix("  claim       FAILS    store file: ") })
        #expect(run.text.contains("verdict     \(verdict)"))
        #expect(run.text.contains("action      reject"))
        #expect(run.output.last?.hasSuffix("is refused: \(answer)") == true)
    }

    @Test("R15: where replay is monitored, nothing of it refuses", arguments: outcomes)
    func monitored(outcome: ClaimOutcome, verdict: String, answer: String) {
        let (run, _) = explain(.answered(outcome), route: Self.monitored)
        #expect(run.exitCode == .done)
        #expect(run.text.contains("verdict     \(verdict)"))
        #expect(run.text.contains("action      would_reject"))
    }

    @Test("R6: a session token needs no look into the store")
    func sessionToken() {
        let token = TestIssuer.standard.token(claims: [
            "exp": "\(TestIssuer.now + 3540)", "iat": "\(TestIssuer.now - 60)",
        ])
        let (run, claims) = explain(token: token)
        #expect(claims.claims.isEmpty)
        #expect(
            run.text.contains("limited_use FAILS    1h, a session token: limited-use up to 29m"))
        #expect(run.text.contains("verdict     not_limited_use"))
        #expect(run.output.last?.hasSuffix("is refused: 401 limited_use_required") == true)
        let (longer, asked) = explain(
            token: token, replay: "store = \"file\"\nlimited_use_max_lifetime = \"2h\"")
        #expect(asked.claims.count == 1)
        #expect(longer.exitCode == .done)
    }

    @Test("R3: a token that fails earlier is not looked up, nor one on a route without replay")
    func notAsked() {
        let expired = TestIssuer.standard.token(claims: ["exp": "\(TestIssuer.now - 3600)"])
        let (refused, first) = explain(token: expired)
        #expect(refused.exitCode == .wrong)
        #expect(first.claims.isEmpty)
        let (open, second) = explain(.answered(.reused), route: "app_check = \"enforce\"")
        #expect(open.exitCode == .done)
        #expect(open.text.contains("replay            off"))
        #expect(second.claims.isEmpty)
    }

    @Test("R5: looks for the key under which the proxy claims, until the token is dead")
    func claim() {
        let (_, asked) = explain()
        let claim = asked.claims.first
        #expect(
            claim?.key
                == ClaimKey(
                    issuer: "https://firebaseappcheck.googleapis.com/123", tokenID: "once"))
        #expect(claim?.issuedAt == TestIssuer.now - 60)
        #expect(claim?.retainedUntil == TestIssuer.now + 240 + 300)
        #expect(claim?.at.wallSeconds == TestIssuer.now)
    }

    @Test("R11: a store that cannot be asked is 503, or allowed where the route says so")
    func failed() {
        let (closed, _) = explain(.failed("nobody listens"))
        #expect(
            closed.text.contains(
                "claim       FAILS    store file cannot be asked from here: nobody listens"))
        #expect(closed.output.last?.hasSuffix("is refused: 503 verification_unavailable") == true)
        let (open, _) = explain(
            .failed("nobody listens"), route: Self.enforced + "\nwhen_unavailable = \"allow\"")
        #expect(open.text.contains("when_unavailable  allow, of this route"))
        #expect(open.text.contains("verdict     unavailable, reason replay_store"))
        #expect(open.text.contains("action      allow"))
        #expect(open.exitCode == .done)
    }

    @Test("what only the running process knows is left open")
    func unknown() {
        let (run, _) = explain(.unknown("only the running process knows"))
        #expect(run.exitCode == .done)
        #expect(run.text.contains("claim       skipped  only the running process knows"))
        #expect(run.text.contains("caution     whether the token was used is not known: only"))
        #expect(
            run.output.last?.hasSuffix("to api, provided the token was not used before") == true)
    }

    @Test("without keys, what the claims say of the token's use is told all the same")
    func withoutKeys() {
        let (fresh, asked) = explain(hasKeys: false)
        #expect(asked.claims.count == 1)
        #expect(fresh.output.last?.hasSuffix("provided the signature holds") == true)
        let (used, _) = explain(.answered(.reused), hasKeys: false)
        #expect(used.output.last?.hasSuffix("is refused: 401 token_already_used") == true)
    }

    @Test("memory and google are not asked: it would be in vain, or use the token")
    func localAnswers() throws {
        for (settings, words) in [
            ("store = \"memory\"", "only the running process knows"),
            (
                "store = \"google\"\ngoogle = { credentials = \"keys.json\" }",
                "only Google knows"
            ),
        ] {
            let loaded = Configuration.load(
                text: Self.configuration(Self.monitored, replay: settings),
                fileName: "proxy.conf",
                surroundings: Surroundings(file: { _ in [0x7B, 0x7D] }, environment: { _ in nil }))
            let configuration = try #require(loaded.configuration)
            let claim = Claim(
                key: ClaimKey(high: 1, low: 2), issuedAt: 0, retainedUntil: 1,
                at: ClaimInstant(wallMicroseconds: 0, monotonic: .now))
            guard case .unknown(let reason) = StoreInspector().inspect(claim, in: configuration)
            else {
                Issue.record("\(settings) was asked")
                continue
            }
            #expect(reason.hasPrefix(words))
        }
    }
}
