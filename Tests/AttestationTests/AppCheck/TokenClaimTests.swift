import Attestation
import TestKit
import Testing

@Suite("The claims of a token")
struct TokenClaimTests {
    static let issuer = TestIssuer.standard
    static let now = TestIssuer.now

    static func outcome(_ claims: [String: String?], now: Int64 = now) -> Outcome {
        judge(issuer.token(claims: claims), now: now)
    }

    @Test(
        "T5: refuses an audience of any other type",
        arguments: [
            "\"projects/123\"", "123", "{\"projects/123\":\"projects/pid\"}", "[]", "null", "true",
            nil,
            "[[\"projects/123\",\"projects/pid\"]]", "[\"projects/123\",\"projects/pid\",1]",
            "[\"projects/123\",\"projects/pid\",null]", "[\"projects/123projects/pid\"]",
        ] as [String?])
    func audienceType(json: String?) {
        #expect(Self.outcome(["aud": json]) == .invalid(.audience))
    }

    @Test("T6: wants both names of the project when both are configured")
    func bothNames() {
        #expect(Self.outcome(["aud": "[\"projects/pid\",\"x\",\"projects\\/123\"]"]) == .verified)
        #expect(Self.outcome(["aud": "[\"projects/pid\"]"]) == .invalid(.audience))
        #expect(Self.outcome(["aud": "[\"projects/123\"]"]) == .invalid(.audience))
        #expect(Self.outcome(["aud": "[\"123\",\"pid\"]"]) == .invalid(.audience))
        #expect(Self.outcome(["aud": "[\"Projects/123\",\"projects/PID\"]"]) == .invalid(.audience))
        var project = TestIssuer.project
        project.id = nil
        let numberOnly = Self.issuer.token(claims: ["aud": "[\"projects/123\"]"])
        #expect(judge(numberOnly, projects: [project]) == .verified)
        let idOnly = Self.issuer.token(claims: ["aud": "[\"projects/pid\"]"])
        #expect(judge(idOnly, projects: [project]) == .invalid(.audience))
    }

    @Test("T6: refuses a token of another Firebase project that the same keys sign")
    func otherProject() {
        let aud = "[\"projects/999\",\"projects/other\"]"
        let iss = "\"https://firebaseappcheck.googleapis.com/999\""
        #expect(Self.outcome(["aud": aud]) == .invalid(.audience))
        #expect(Self.outcome(["aud": aud, "iss": iss]) == .invalid(.issuer))
        #expect(Self.outcome(["iss": iss]) == .invalid(.issuer))
    }

    @Test("T6: the issuer chooses the project, its names and its keys, among several")
    func severalProjects() throws {
        var second = TestIssuer.project
        second.name = "staging"
        second.number = "456"
        second.id = "stage"
        second.issuer = "https://firebaseappcheck.googleapis.com/456"
        let other = TestIssuer(key: TestIssuer.other.mint.key, keyID: "k1", project: second)
        let verifier = TokenVerifier(projects: [TestIssuer.project, second])
        let keySets = [TestIssuer.standard.keySet, other.keySet]
        func verdict(_ token: String) -> TokenVerdict {
            verifier.verify(Array(token.utf8).span, now: Self.now) { keySets[$0] }
        }
        let aud = "[\"projects/456\",\"projects/stage\"]"
        guard case .verified(let token) = verdict(other.token(claims: ["aud": aud])) else {
            Issue.record("not verified")
            return
        }
        #expect(token.project == 1)
        #expect(Outcome(verdict(Self.issuer.token())) == .verified)
        // Each project's issuer with the other one's key, and with the other one's audience.
        let claims = ["iss": "\"\(second.issuer)\"", "aud": aud]
        #expect(Outcome(verdict(Self.issuer.token(claims: claims))) == .invalid(.signature))
        #expect(Outcome(verdict(other.token())) == .invalid(.audience))
    }

    @Test(
        "T7: refuses every issuer but the very one",
        arguments: [
            "\"https://firebaseappcheck.googleapis.com/1234\"",
            "\"https://firebaseappcheck.googleapis.com/12\"",
            "\"https://firebaseappcheck.googleapis.com/\"",
            "\"https://firebaseappcheck.googleapis.com\"",
            "\"https://firebaseappcheck.googleapis.com.evil.com/123\"",
            "\"https://firebaseappcheck.googleapis.com/123/\"",
            "\"http://firebaseappcheck.googleapis.com/123\"",
            "\"HTTPS://firebaseappcheck.googleapis.com/123\"",
            "\" https://firebaseappcheck.googleapis.com/123\"",
            "\"https://firebaseappcheck.googleapis.com/123\\u0000\"", "\"\"", "123", "null", nil,
            "[\"https://firebaseappcheck.googleapis.com/123\"]",
        ] as [String?])
    func issuer(json: String?) {
        #expect(Self.outcome(["iss": json]) == .invalid(.issuer))
    }

    @Test(
        "T8: refuses a subject that is no app id",
        arguments: [
            "\"\"", "5", "null", "[\"1:123:ios:abc\"]", "{}", nil, "\"1:123:ios abc\"",
            "\"a\\r\\nb\"",
            "\"a\\u0000\"", "\"é\"", "\"\(String(repeating: "a", count: 257))\"",
        ] as [String?])
    func subject(json: String?) {
        #expect(Self.outcome(["sub": json]) == .invalid(.subject))
    }

    @Test("T8: tells an app without an alias from one with")
    func appWithoutAlias() throws {
        let verifier = TokenVerifier(projects: [TestIssuer.project])
        for (appID, app) in [(TestIssuer.appID, 0), ("1:123:web:def", nil)] as [(String, Int?)] {
            let token = Self.issuer.token(claims: ["sub": "\"\(appID)\""])
            let verdict = verifier.verify(Array(token.utf8).span, now: Self.now) { _ in
                Self.issuer.keySet
            }
            guard case .verified(let verified) = verdict else {
                Issue.record("not verified")
                return
            }
            #expect(verified.appID == appID)
            #expect(verified.app == app)
            #expect(verified.issuedAt == Self.now)
            #expect(verified.expiresAt == Self.now + 3600)
            #expect(verified.acceptedUntil == Self.now + 3660)
            #expect(verified.tokenID == "x")
            #expect(verified.provider == "app_attest")
            #expect(verified.keyID == "k1")
        }
    }

    @Test(
        "T9: refuses times that are not whole numbers of seconds, and traps on none",
        arguments: [
            nil, "-1", "-9223372036854775808", "-9223372036854775809", "1800000000.5",
            "1800000000.0",
            "1.8e9", "1e400", "-1e400", "1e-400", "9223372036854775807", "9223372036854775808",
            "99999999999999999999999999", "9007199254740993", "\"1800000000\"", "null", "true",
            "[]", "{}",
            "[1800000000]", "\"\"", "-0",
        ] as [String?])
    func times(json: String?) {
        #expect(Self.outcome(["exp": json]) == .invalid(.malformed))
        #expect(Self.outcome(["iat": json]) == .invalid(.malformed))
        if let json { #expect(Self.outcome(["nbf": json]) == .invalid(.malformed)) }
    }

    @Test("T9: refuses a life that is empty, runs backwards, or is longer than App Check gives")
    func lifetime() {
        let week: Int64 = 7 * 24 * 3600
        func outcome(_ issuedAt: Int64, _ expiresAt: Int64) -> Outcome {
            Self.outcome(["iat": "\(issuedAt)", "exp": "\(expiresAt)"])
        }
        #expect(outcome(Self.now, Self.now) == .invalid(.lifetime))
        #expect(outcome(Self.now, Self.now - 1) == .invalid(.lifetime))
        #expect(outcome(Self.now, Self.now + 1) == .verified)
        #expect(outcome(Self.now, Self.now + week) == .verified)
        #expect(outcome(Self.now, Self.now + week + 60) == .verified)
        #expect(outcome(Self.now, Self.now + week + 61) == .invalid(.lifetime))
        #expect(outcome(0, 1 << 53) == .invalid(.lifetime))
        #expect(outcome(Self.now, 1 << 53) == .invalid(.lifetime))
        #expect(outcome(1 << 53, 0) == .invalid(.lifetime))
    }

    @Test("T9: refuses a token from the future, beyond the leeway")
    func future() {
        #expect(Self.outcome(["iat": "\(Self.now + 60)"]) == .verified)
        #expect(Self.outcome(["iat": "\(Self.now + 61)"]) == .invalid(.notYetValid))
        #expect(Self.outcome(["nbf": "\(Self.now + 60)"]) == .verified)
        #expect(Self.outcome(["nbf": "\(Self.now + 61)"]) == .invalid(.notYetValid))
        #expect(Self.outcome(["nbf": "0"]) == .verified)
    }

    @Test("T10: refuses an ID token of Firebase Auth", arguments: ["k1", "a1b2c3"])
    func authToken(keyID: String) {
        let payload = """
            {"iss":"https://securetoken.google.com/pid","aud":"pid","auth_time":1800000000,\
            "user_id":"u","sub":"u","iat":1800000000,"exp":1800003600,"firebase":{"identities":{}}}
            """
        let header = "{\"alg\":\"RS256\",\"kid\":\"\(keyID)\",\"typ\":\"JWT\"}"
        let token = Self.issuer.token(headerJSON: header, payloadJSON: payload)
        #expect(judge(token) == .invalid(.issuer))
    }

    @Test(
        "T15: accepts a token until its end and the leeway, and not one second more",
        arguments: [(-59, true), (-60, false), (-61, false), (0, true), (1, true)])
    func skew(offset: Int64, isAccepted: Bool) {
        let claims = ["exp": "\(Self.now + offset)", "iat": "\(Self.now - 600)"]
        #expect(Self.outcome(claims) == (isAccepted ? .verified : .invalid(.expired)))
    }

    @Test("T15: without leeway, a token ends with its last second")
    func noLeeway() {
        var project = TestIssuer.project
        project.leeway = 0
        let token = Self.issuer.token()
        #expect(judge(token, now: Self.now + 3599, projects: [project]) == .verified)
        #expect(judge(token, now: Self.now + 3600, projects: [project]) == .invalid(.expired))
        #expect(judge(token, now: Self.now - 1, projects: [project]) == .invalid(.notYetValid))
    }

    @Test("no time of day traps", arguments: [Int64.min, -1, 0, 1 << 53, Int64.max])
    func clocks(now: Int64) {
        #expect(Self.outcome([:], now: now) != .verified)
    }

    @Test("bounds the token id, and does not ask for one")
    func tokenID() {
        #expect(Self.outcome(["jti": nil]) == .verified)
        #expect(Self.outcome(["jti": "\"\(String(repeating: "j", count: 500))\""]) == .verified)
        for json in ["\"\"", "\"\(String(repeating: "j", count: 501))\"", "5", "null", "[\"x\"]"] {
            #expect(Self.outcome(["jti": json]) == .invalid(.malformed))
        }
        for json in ["5", "null", "[]", nil] as [String?] {
            #expect(Self.outcome(["provider": json]) == .verified)
        }
    }

    @Test("tells nothing about the claims of a token that is not signed")
    func signatureFirst() {
        for claims in [["aud": "[]"], ["sub": "\"\""], ["exp": "1", "iat": "0"], ["exp": nil]] {
            let forged = TestIssuer(key: TestIssuer.other.mint.key, keyID: "k1")
            #expect(judge(forged.token(claims: claims)) == .invalid(.signature))
        }
    }

    @Test("a claim's name counts as its escapes are resolved, and not with a byte more or less")
    func names() {
        let issuer = "\"https://firebaseappcheck.googleapis.com/123\""
        #expect(Self.outcome(["iss": nil, "\\u0069s\\u0073": issuer]) == .verified)
        for name in ["iss\\u0000", "Iss", "issu", "is", "iss ", "\\u0000iss"] {
            #expect(Self.outcome(["iss": nil, name: issuer]) == .invalid(.issuer))
        }
        #expect(Self.outcome(["sub": nil, "sub\\u0000": "\"x\""]) == .invalid(.subject))
        #expect(Self.outcome(["exp": nil, "ex\\u0070": "\(Self.now + 60)"]) == .verified)
        #expect(Self.outcome(["\\u006ebf": "\(Self.now + 600)"]) == .invalid(.notYetValid))
        #expect(Self.outcome(["nbf\\u0000": "\(Self.now + 600)"]) == .verified)
        #expect(Self.outcome(["\\u0073ub": "\"other\""]) == .invalid(.malformed))
    }
}
