import Attestation
import TestKit
import Testing

@Suite("Whether a signature is worth computing")
struct AdmissionTests {
    private static let issuer = TestIssuer.standard

    /// What comes of a token, and how often it was asked whether to compute its signature.
    private func judge(_ token: String, admits: Bool, keySet: KeySet? = issuer.keySet) -> (
        outcome: Outcome, asked: Int
    ) {
        var asked = 0
        let bytes = Array(token.utf8)
        let verdict = TokenVerifier(projects: [TestIssuer.project]).verify(
            bytes.span, now: TestIssuer.now, keys: { _ in keySet },
            admits: {
                asked += 1
                return admits
            })
        return (Outcome(verdict), asked)
    }

    @Test("is asked once, and no is an answer of its own")
    func genuine() {
        let token = Self.issuer.token()
        #expect(judge(token, admits: true) == (.verified, 1))
        #expect(judge(token, admits: false) == (.notAdmitted, 1))
    }

    @Test("is not asked where the form, the header, the issuer or the key decides")
    func cheap() {
        #expect(judge("eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ==", admits: false).asked == 0)
        #expect(judge("a.b.c", admits: false) == (.invalid(.malformed), 0))
        #expect(judge(Self.issuer.token(), admits: false, keySet: nil) == (.keysUnavailable, 0))
    }

    @Test("is asked for a forged token, and for a genuine one that is worth nothing")
    func expensive() {
        let token = Self.issuer.token()
        let forged =
            token.prefix(upTo: token.lastIndex(of: ".") ?? token.endIndex) + "."
            + String(repeating: "A", count: 342)
        #expect(judge(String(forged), admits: true) == (.invalid(.signature), 1))
        #expect(judge(String(forged), admits: false) == (.notAdmitted, 1))
    }
}
