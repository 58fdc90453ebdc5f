public import Attestation

/// An issuer of App Check tokens for tests, with control over every claim and every byte.
///
/// Its keys are made once in a process: making one takes longer than most tests.
public struct TestIssuer: Sendable {
    /// A time that tests may take for now: Unix seconds.
    public static let now: Int64 = 1_800_000_000
    /// The app that tokens are for, unless a test says otherwise.
    public static let appID = "1:123:ios:abc"

    /// The project 123, `pid`, with the alias `ios` for ``appID``.
    public static let project = Project(
        name: "production", number: "123", id: "pid",
        issuer: "https://firebaseappcheck.googleapis.com/123", apps: [("ios", appID)], leeway: 60)

    /// Key `k1`, RSA-2048.
    public static let standard = TestIssuer(key: makeKey(bits: 2048), keyID: "k1")
    /// Key `k2`, another RSA-2048.
    public static let other = TestIssuer(key: makeKey(bits: 2048), keyID: "k2")
    /// Key `k3`, RSA-3072, as Google's tokens have it.
    public static let large = TestIssuer(key: makeKey(bits: 3072), keyID: "k3")

    public let mint: TokenMint
    /// The key set with this issuer's key alone.
    public let keySet: KeySet

    public init(key: SigningKey, keyID: String, project: Project = project) {
        mint = TokenMint(
            key: key, keyID: keyID, issuer: project.issuer, projectNumber: project.number,
            projectID: project.id)
        keySet = Self.keySet(of: [mint])
    }

    /// The key set with the keys of several issuers.
    public static func keySet(of issuers: [TestIssuer]) -> KeySet {
        keySet(of: issuers.map(\.mint))
    }

    private static func keySet(of mints: [TokenMint]) -> KeySet {
        let json = keySetJSON(of: mints)
        do throws(KeySetError) {
            return try KeySet.parse(Array(json.utf8).span)
        } catch {
            preconditionFailure("a key set of our own: \(error)")
        }
    }

    /// The JSON of ``keySet(of:)``.
    public static func keySetJSON(of issuers: [TestIssuer]) -> String {
        keySetJSON(of: issuers.map(\.mint))
    }

    private static func keySetJSON(of mints: [TokenMint]) -> String {
        let keys = mints.map { (try? $0.key.publicJWK(keyID: $0.keyID)) ?? "null" }
        return "{\"keys\":[\(keys.joined(separator: ","))]}"
    }

    /// A token with some header members and claims replaced.
    ///
    /// - Parameters:
    ///   - header: JSON text for each member; nil takes the member out, a new name comes last.
    ///   - claims: Likewise for the payload.
    public func token(
        header: [String: String?] = [:], claims: [String: String?] = [:], now: Int64 = now
    ) -> String {
        let header = Self.object(Self.header(keyID: mint.keyID), replacing: header)
        let payload = Self.object(Self.claims(issuer: mint.issuer, now: now), replacing: claims)
        return token(headerJSON: header, payloadJSON: payload)
    }

    /// A token with these very texts as header and payload.
    public func token(headerJSON: String, payloadJSON: String) -> String {
        guard let token = try? mint.token(header: headerJSON, payload: payloadJSON) else {
            preconditionFailure("signing with a key of our own")
        }
        return token
    }

    /// The header of an ordinary token: names and JSON texts, in order.
    public static func header(keyID: String) -> [(name: String, json: String)] {
        [("kid", "\"\(keyID)\""), ("typ", "\"JWT\""), ("alg", "\"RS256\"")]
    }

    /// The claims of an ordinary token: names and JSON texts, in order.
    public static func claims(issuer: String, now: Int64) -> [(name: String, json: String)] {
        [
            ("sub", "\"\(appID)\""), ("aud", "[\"projects/123\",\"projects/pid\"]"),
            ("provider", "\"app_attest\""), ("iss", "\"\(issuer)\""), ("exp", "\(now + 3600)"),
            ("iat", "\(now)"), ("jti", "\"x\""),
        ]
    }

    /// The JSON of an object, with some members replaced, taken out (nil) or added.
    public static func object(
        _ members: [(name: String, json: String)], replacing: [String: String?]
    ) -> String {
        var texts: [String] = []
        for member in members {
            switch replacing[member.name] {
            case .none: texts.append("\"\(member.name)\":\(member.json)")
            case .some(.none): continue
            case .some(.some(let json)): texts.append("\"\(member.name)\":\(json)")
            }
        }
        let known = Set(members.map(\.name))
        for (name, json) in replacing.sorted(by: { $0.key < $1.key }) where !known.contains(name) {
            if let json { texts.append("\"\(name)\":\(json)") }
        }
        return "{\(texts.joined(separator: ","))}"
    }

    private static func makeKey(bits: UInt32) -> SigningKey {
        guard let key = try? SigningKey.generate(bits: bits) else {
            preconditionFailure("no RSA key of \(bits) bits")
        }
        return key
    }
}
