import Attestation
import TestKit
import Testing

@Suite("The explanation of a token")
struct ExplanationTests {
    static let issuer = TestIssuer.standard

    static func steps(
        _ token: String, projects: [Project] = [TestIssuer.project],
        keySet: KeySet? = issuer.keySet
    ) -> [VerificationStep] {
        TokenVerifier(projects: projects).explain(Array(token.utf8).span, now: TestIssuer.now) {
            _ in
            keySet
        }
    }

    static func step(
        _ name: String, _ token: String, projects: [Project] = [TestIssuer.project],
        keySet: KeySet? = issuer.keySet
    ) -> VerificationStep.Outcome? {
        steps(token, projects: projects, keySet: keySet).first { $0.name == name }?.outcome
    }

    static let names = [
        "form", "algorithm", "type", "critical", "key_id", "issuer", "key", "signature", "audience",
        "subject", "lifetime", "not_before", "token_id", "expiry",
    ]

    @Test("always tells the same steps in the same order")
    func order() {
        let tokens = [
            Self.issuer.token(), "", "a.b.c", "6F9619FF-8B86-D011-B42D-00C04FC964FF",
            "eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ==", Self.issuer.token(claims: ["iss": nil]),
            Self.issuer.token(header: ["kid": nil]), TestIssuer.other.token(),
        ]
        for token in tokens {
            #expect(Self.steps(token).map(\.name) == Self.names)
            #expect(Self.steps(token, keySet: nil).map(\.name) == Self.names)
            #expect(Self.steps(token, projects: []).map(\.name) == Self.names)
        }
    }

    @Test("tells expected against got")
    func expectedAgainstGot() {
        #expect(
            Self.step("issuer", Self.issuer.token(claims: ["iss": "\"https://example.com/9\""]))
                == .fails(
                    "expected \"https://firebaseappcheck.googleapis.com/123\", "
                        + "got \"https://example.com/9\""))
        #expect(
            Self.step("audience", Self.issuer.token(claims: ["aud": "[\"projects/9\",5,[]]"]))
                == .fails(
                    "expected an array with \"projects/123\" and \"projects/pid\", "
                        + "got [\"projects/9\", 5, an array]"))
        #expect(
            Self.step("algorithm", Self.issuer.token(header: ["alg": "\"none\""]))
                == .fails("expected \"RS256\", got \"none\""))
        #expect(
            Self.step(
                "expiry", Self.issuer.token(claims: ["exp": "1799999000", "iat": "1799998000"]))
                == .fails("exp 1799999000, 1000 s ago, leeway 60 s"))
        #expect(
            Self.step("key", TestIssuer.other.token())
                == .fails("\"k2\" is not in the key set of project production: k1"))
        #expect(
            Self.step("subject", Self.issuer.token()) == .holds("app \"1:123:ios:abc\", alias ios"))
    }

    @Test("goes on behind a failure as far as it can")
    func goesOn() {
        let claims = ["iss": "\"https://example.com/9\"", "aud": "[]", "exp": "1", "iat": "0"]
        let token = TestIssuer(key: TestIssuer.other.mint.key, keyID: "k1").token(claims: claims)
        let failing = Self.steps(token).filter {
            if case .fails = $0.outcome { true } else { false }
        }
        #expect(failing.map(\.name) == ["issuer", "signature", "audience", "expiry"])
        // With two projects nobody knows whose names were meant.
        var second = TestIssuer.project
        second.issuer = "https://firebaseappcheck.googleapis.com/456"
        #expect(
            Self.step("audience", token, projects: [TestIssuer.project, second])
                == .skipped("the issuer chooses the project"))
    }

    @Test("shows no byte that could steer a terminal, and no long claim in full")
    func harmless() {
        let wild = "\"\\u001b[2J\\u0000é\\\"\(String(repeating: "x", count: 3000))\""
        let token = Self.issuer.token(
            header: ["kid": wild, "typ": wild, "alg": wild],
            claims: [
                "iss": wild, "aud": "[\(wild)]", "sub": wild, "exp": wild, "iat": wild, "jti": wild,
            ])
        for step in Self.steps(token) {
            let text =
                switch step.outcome {
                case .holds(let text), .fails(let text), .skipped(let text): text
                }
            #expect(text.utf8.count < 800)
            #expect(text.replacing("…", with: "").utf8.allSatisfy { 0x20...0x7E ~= $0 })
        }
    }
}
