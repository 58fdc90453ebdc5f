internal import Attestation
internal import HTTP
internal import Reactor

/// One exchange of a signed assertion for an access token (RFC 7523, section 2.1).
enum TokenExchange {
    /// What may be done with the token: nothing but App Check and its siblings.
    private static let scope = "https://www.googleapis.com/auth/firebase"
    /// Life of an assertion in seconds; Google allows an hour.
    private static let assertionLifetime: Int64 = 3600
    /// Clocks differ a little; an assertion from the future is refused.
    private static let tolerance: Int64 = 10
    private static let longestToken = 8 << 10

    /// What came of it.
    enum Outcome {
        /// `lifetime` in seconds, 1 to 86400.
        case token(String, lifetime: Int64)
        case failure(StoreFailure, reason: String, hint: String)
    }

    /// The request's content.
    static func form(
        _ account: ServiceAccount, wallSeconds: Int64
    ) throws(SigningKeyError) -> [UInt8] {
        let issued = wallSeconds - tolerance
        let header = "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\(account.keyID.jsonQuoted)}"
        let payload = """
            {"iss":\(account.email.jsonQuoted),"scope":"\(scope)",\
            "aud":\(account.tokenURI.jsonQuoted),"iat":\(issued),\
            "exp":\(issued + assertionLifetime)}
            """
        let assertion = try account.key.compactJWS(header: header, payload: payload)
        return Array(
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)"
                .utf8)
    }

    /// Reads the answer (RFC 6749, sections 5.1 and 5.2).
    static func read(_ response: HTTPResponse, _ account: ServiceAccount) -> Outcome {
        let document = try? JSONDocument(response.body)
        if response.status == 200 {
            return document.flatMap(token)
                ?? .failure(
                    .protocolError, reason: "it answered 200 without a usable access token",
                    hint: "check \"token_uri\" in the key file")
        }
        let code = document?.text("error")
        let description = document?.text("error_description")
        let said = [code, description].compactMap(\.self).map { ForeignText.bounded($0) }
            .joined(separator: ": ")
        let reason = "it answered \(response.status)" + (said.isEmpty ? "" : " (\(said))")
        switch response.status {
        case 400, 401, 403:
            return .failure(
                .denied, reason: reason,
                hint: "check that the key of \(ForeignText.bounded(account.email)) is neither "
                    + "deleted nor disabled, and that this machine's clock is right")
        case 429: return .failure(.overloaded, reason: reason, hint: "it is tried again soon")
        default: return .failure(.protocolError, reason: reason, hint: "it is tried again soon")
        }
    }

    private static func token(_ document: JSONDocument) -> Outcome? {
        guard let token = document.text("access_token"), token.utf8.count <= longestToken,
            token.utf8.allSatisfy({ 0x21...0x7E ~= $0 })
        else { return nil }
        if document.member("token_type") != nil,
            document.text("token_type")?.lowercased() != "bearer"
        {
            return nil
        }
        // Recommended only; a token without it is used for a moment and asked for again.
        let lifetime = document.member("expires_in").flatMap(document.integer) ?? 300
        return .token(token, lifetime: min(max(lifetime, 1), 86_400))
    }
}
