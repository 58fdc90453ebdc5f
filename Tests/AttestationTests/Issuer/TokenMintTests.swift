import Attestation
import TestKit
import Testing

@Suite("The development issuer")
struct TokenMintTests {
    static let mint = TestIssuer.standard.mint

    static func verified(_ token: String, by keySetJSON: String) throws -> VerifiedToken? {
        let keySet = try KeySet.parse(Array(keySetJSON.utf8).span)
        let verifier = TokenVerifier(projects: [TestIssuer.project])
        let verdict = verifier.verify(Array(token.utf8).span, now: TestIssuer.now) { _ in keySet }
        if case .verified(let token) = verdict { return token }
        return nil
    }

    @Test("mints session tokens that verify with its key set")
    func session() throws {
        let token = try Self.mint.sessionToken(appID: TestIssuer.appID, now: TestIssuer.now)
        let verified = try #require(try Self.verified(token, by: Self.mint.keySet()))
        #expect(verified.appID == TestIssuer.appID)
        #expect(verified.expiresAt - verified.issuedAt == 3600)
        #expect(verified.tokenID != nil)
        #expect(verified.provider == "debug")
    }

    @Test("mints limited-use tokens of five minutes, each with an id of its own")
    func limitedUse() throws {
        let tokens = try (0..<3).map { _ in
            try Self.mint.limitedUseToken(appID: TestIssuer.appID, now: TestIssuer.now)
        }
        let verified = try tokens.compactMap { try Self.verified($0, by: Self.mint.keySet()) }
        #expect(verified.map { $0.expiresAt - $0.issuedAt } == [300, 300, 300])
        #expect(Set(verified.compactMap(\.tokenID)).count == 3)
        #expect(verified.allSatisfy { ($0.tokenID ?? "").utf8.count >= 16 })
        let named = try Self.mint.limitedUseToken(
            appID: TestIssuer.appID, now: TestIssuer.now, tokenID: "a \"b\" \\ \n \u{1}é")
        #expect(try Self.verified(named, by: Self.mint.keySet())?.tokenID == "a \"b\" \\ \n \u{1}é")
    }

    @Test("keeps a key over a restart as PEM")
    func pem() throws {
        let pem = try Self.mint.key.pem()
        #expect(pem.hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
        let again = try SigningKey(pem: pem)
        #expect(try again.publicJWK(keyID: "k") == Self.mint.key.publicJWK(keyID: "k"))
        #expect(throws: SigningKeyError.self) { try SigningKey(pem: "") }
        #expect(throws: SigningKeyError.self) { try SigningKey(pem: "-----BEGIN PRIVATE KEY-----") }
    }

    @Test("takes no key of another kind")
    func otherKind() {
        let curve = """
            -----BEGIN PRIVATE KEY-----
            MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
            -----END PRIVATE KEY-----

            """
        #expect(throws: SigningKeyError.self) { try SigningKey(pem: curve) }
    }
}
