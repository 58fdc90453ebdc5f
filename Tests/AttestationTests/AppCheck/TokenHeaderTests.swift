import Attestation
import TestKit
import Testing

@Suite("The header of a token")
struct TokenHeaderTests {
    static let issuer = TestIssuer.standard

    /// The verdict, and whether a key set was asked for on the way to it.
    static func verdict(_ token: String) -> (outcome: Outcome, askedForKeys: Bool) {
        var askedForKeys = false
        let verifier = TokenVerifier(projects: [TestIssuer.project])
        let verdict = verifier.verify(Array(token.utf8).span, now: TestIssuer.now) { _ in
            askedForKeys = true
            return issuer.keySet
        }
        return (Outcome(verdict), askedForKeys)
    }

    @Test(
        "T1: refuses every algorithm but RS256 before any key is used",
        arguments: [
            "\"none\"", "\"None\"", "\"NONE\"", "\"\"", "\"HS256\"", "\"PS256\"", "\"ES256\"",
            "\"RS384\"", "\"RS512\"", "\"rs256\"", "\"RS256 \"", "\"RS256\\u0000\"", "\"RS2560\"",
            "null", "true", "256", "[\"RS256\"]", "{\"RS256\":1}", nil,
        ] as [String?])
    func algorithm(json: String?) {
        let token = Self.issuer.token(header: ["alg": json])
        #expect(Self.verdict(token) == (.invalid(.algorithm), false))
        #expect(judge(token) == .invalid(.algorithm))
        let unsigned = token.split(separator: ".")[..<2].joined(separator: ".") + "."
        #expect(Self.verdict(unsigned) == (.invalid(.algorithm), false))
    }

    @Test("T1: an escape does not make another algorithm of RS256")
    func escapedAlgorithm() {
        #expect(judge(Self.issuer.token(header: ["alg": "\"RS\\u003256\""])) == .verified)
    }

    @Test("T2: a token that brings its own key is judged by ours")
    func ownKey() throws {
        let stranger = TestIssuer(key: TestIssuer.other.mint.key, keyID: "k1")
        let jwk = try stranger.mint.key.publicJWK(keyID: "k1")
        let members: [String: String?] = [
            "jwk": jwk, "jku": "\"https://example.com/keys\"", "x5u": "\"https://example.com/x\"",
            "x5c": "[\"MIIB\"]",
        ]
        #expect(judge(stranger.token(header: members)) == .invalid(.signature))
        #expect(judge(Self.issuer.token(header: members)) == .verified)
    }

    @Test(
        "T2: refuses critical extensions, known or not",
        arguments: ["[\"exp\"]", "[\"b64\"]", "[]", "\"\"", "null", "{}"])
    func critical(json: String) {
        let token = Self.issuer.token(header: ["crit": json])
        #expect(Self.verdict(token) == (.invalid(.malformed), false))
        #expect(judge(token) == .invalid(.malformed))
    }

    @Test("T3: refuses a token without kid, even when there is only one key")
    func noKeyID() {
        #expect(
            Self.verdict(Self.issuer.token(header: ["kid": nil])) == (.invalid(.malformed), false))
    }

    @Test(
        "T4: refuses a kid that no key has, by length and characters, and asks for no key",
        arguments: [
            "\"\"", "\"k1\\u0000\"", "\"k1\\n\"", "\"k'1\"", "\"k\\\"1\"", "\"../k1\"",
            "\"/etc/passwd\"",
            "\"k 1\"", "\"k\\\\1\"", "\"é\"", "\"k1;\"", "\"<k1>\"", "\"\\u001b[2J\"", "1", "null",
            "[]",
            "\"\(String(repeating: "k", count: 129))\"",
            "\"\(String(repeating: "k", count: 4000))\"",
        ])
    func strangeKeyID(json: String) {
        let token = Self.issuer.token(header: ["kid": json])
        #expect(Self.verdict(token) == (.invalid(.malformed), false))
        #expect(judge(token) == .invalid(.malformed))
    }

    @Test(
        "T4: takes every kid that is sane for one",
        arguments: [
            "\"K2\"", "\"k1.\"", "\"a-b_c.d~e+f=:@\"", "\"\(String(repeating: "k", count: 128))\"",
        ])
    func saneKeyID(json: String) {
        #expect(Self.verdict(Self.issuer.token(header: ["kid": json])) == (.unknownKey, true))
    }

    @Test(
        "wants the type to be exactly JWT",
        arguments: ["\"jwt\"", "\"JWT \"", "\"JOSE\"", "null", nil])
    func type(json: String?) {
        #expect(judge(Self.issuer.token(header: ["typ": json])) == .invalid(.malformed))
    }

    @Test(
        "T11: refuses a name twice in header or payload, at any depth",
        arguments: [
            "{\"alg\":\"RS256\",\"kid\":\"k1\",\"typ\":\"JWT\",\"alg\":\"RS256\"}",
            "{\"alg\":\"none\",\"kid\":\"k1\",\"typ\":\"JWT\",\"alg\":\"RS256\"}",
            "{\"alg\":\"RS256\",\"kid\":\"k1\",\"typ\":\"JWT\",\"\\u0061lg\":\"none\"}",
            "{\"alg\":\"RS256\",\"kid\":\"k1\",\"typ\":\"JWT\",\"x\":{\"y\":[{\"z\":1,\"z\":1}]}}",
        ])
    func duplicateNames(header: String) {
        let claims = TestIssuer.claims(issuer: TestIssuer.project.issuer, now: TestIssuer.now)
        let payload = TestIssuer.object(claims, replacing: [:])
        let token = Self.issuer.token(headerJSON: header, payloadJSON: payload)
        #expect(judge(token) == .invalid(.malformed))
        let twice = claims + [("aud", "[\"projects/123\",\"projects/pid\"]")]
        let double = Self.issuer.token(
            headerJSON: TestIssuer.object(TestIssuer.header(keyID: "k1"), replacing: [:]),
            payloadJSON: TestIssuer.object(twice, replacing: [:]))
        #expect(judge(double) == .invalid(.malformed))
    }

    @Test(
        "refuses a header or payload that is no object", arguments: ["[]", "1", "\"{}\"", "", "{"])
    func noObject(json: String) {
        #expect(
            judge(Self.issuer.token(headerJSON: json, payloadJSON: "{}")) == .invalid(.malformed))
        let header = TestIssuer.object(TestIssuer.header(keyID: "k1"), replacing: [:])
        #expect(
            judge(Self.issuer.token(headerJSON: header, payloadJSON: json)) == .invalid(.malformed))
    }
}
