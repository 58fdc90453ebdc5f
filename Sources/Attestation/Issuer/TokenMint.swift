/// Makes App Check tokens in the shape of Google's, for development and tests
/// (docs/app-check-tokens.md 1).
public struct TokenMint: Sendable {
    /// Life of a limited-use token, in seconds (docs/app-check-tokens.md 1).
    public static let limitedUseLifetime: Int64 = 300

    /// Signs the tokens.
    public let key: SigningKey
    /// The `kid` of the tokens.
    public let keyID: String
    /// Claim `iss`.
    public let issuer: String
    /// Claim `aud`, in order.
    public let audiences: [String]

    /// - Parameters:
    ///   - keyID: 1 to 128 characters of a key id.
    ///   - issuer: Claim `iss`, complete with the project number.
    ///   - projectNumber: Digits.
    public init(
        key: SigningKey, keyID: String, issuer: String, projectNumber: String, projectID: String?
    ) {
        self.key = key
        self.keyID = keyID
        self.issuer = issuer
        audiences = ([projectNumber] + [projectID].compactMap(\.self)).map { "projects/\($0)" }
    }

    /// The key set that verifies the tokens of this mint (RFC 7517, section 5).
    public func keySet() throws(SigningKeyError) -> String {
        "{\"keys\":[\(try key.publicJWK(keyID: keyID))]}"
    }

    /// A session token.
    ///
    /// - Parameters:
    ///   - appID: Claim `sub`.
    ///   - now: Claim `iat`, Unix seconds.
    ///   - lifetime: Seconds up to `exp`; an hour is what Google gives.
    ///   - provider: Claim `provider`.
    public func sessionToken(
        appID: String, now: Int64, lifetime: Int64 = 3600, provider: String = "debug"
    ) throws(SigningKeyError) -> String {
        try token(payload: claims(appID: appID, now: now, lifetime: lifetime, provider: provider))
    }

    /// A limited-use token, of 300 seconds.
    ///
    /// - Parameter tokenID: Claim `jti`; a random one when nil.
    public func limitedUseToken(
        appID: String, now: Int64, tokenID: String? = nil, provider: String = "debug"
    ) throws(SigningKeyError) -> String {
        try token(
            payload: claims(
                appID: appID, now: now, lifetime: Self.limitedUseLifetime, provider: provider,
                tokenID: tokenID))
    }

    /// The JSON of a token's header: the members and their order are Google's.
    public var header: String {
        "{\"kid\":\(keyID.jsonQuoted),\"typ\":\"JWT\",\"alg\":\"RS256\"}"
    }

    /// Signs a payload under the usual header.
    public func token(payload: String) throws(SigningKeyError) -> String {
        try token(header: header, payload: payload)
    }

    /// Signs any two texts as header and payload: whether they make sense is the caller's affair.
    public func token(header: String, payload: String) throws(SigningKeyError) -> String {
        try key.compactJWS(header: header, payload: payload)
    }

    private func claims(
        appID: String, now: Int64, lifetime: Int64, provider: String, tokenID: String? = nil
    ) -> String {
        let audiences = audiences.map(\.jsonQuoted).joined(separator: ",")
        let tokenID = tokenID ?? Self.randomTokenID()
        return """
            {"sub":\(appID.jsonQuoted),"aud":[\(audiences)],"provider":\(provider.jsonQuoted),\
            "iss":\(issuer.jsonQuoted),"exp":\(now + lifetime),"iat":\(now),"jti":\(tokenID.jsonQuoted)}
            """
    }

    /// 128 random bits: App Check wants at least 16 bytes of text.
    private static func randomTokenID() -> String {
        let bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        return String(decoding: Base64.url.encode(bytes.span), as: UTF8.self)
    }
}
