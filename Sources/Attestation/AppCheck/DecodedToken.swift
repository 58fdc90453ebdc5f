/// Why the bytes of a token are no JWS in compact serialization; the raw value explains it.
enum TokenFormFault: String, Error {
    case empty = "it is empty"
    case tooLong = "it is longer than 8192 bytes"
    case segments = "it has not exactly three segments between dots"
    case headerEncoding = "its header is not canonical base64url"
    case payloadEncoding = "its payload is not canonical base64url"
    case signatureEncoding = "its signature is not canonical base64url"
    case header = "its header is not a JSON object with unique member names"
    case payload = "its payload is not a JSON object with unique member names"
}

/// A token taken apart, with nothing believed yet (RFC 7515, section 5.2, steps 1 to 7).
struct DecodedToken: ~Copyable {
    /// The first segment.
    let header: TokenHeader
    /// The second segment.
    let claims: TokenClaims
    /// The third segment.
    let signature: [UInt8]
    /// How many bytes from the start are signed: header, dot and payload.
    let signedByteCount: Int

    /// Decodes a token; its signature is not checked.
    ///
    /// - Throws: what is wrong with its form.
    init(_ token: Span<UInt8>) throws(TokenFormFault) {
        let segments = try Segments(token)
        let header = try Self.object(
            token.extracting(..<segments.firstDot), encoding: .headerEncoding, json: .header)
        let claims = try Self.object(
            token.extracting((segments.firstDot + 1)..<segments.secondDot),
            encoding: .payloadEncoding, json: .payload)
        guard let signature = Base64.url.decode(token.extracting((segments.secondDot + 1)...))
        else { throw .signatureEncoding }
        self.header = TokenHeader(header)
        self.claims = TokenClaims(claims)
        self.signature = signature
        signedByteCount = segments.secondDot
    }

    /// The payload alone, for who wants to know whose token it claims to be.
    static func claims(of token: Span<UInt8>) throws(TokenFormFault) -> TokenClaims {
        let segments = try Segments(token)
        return TokenClaims(
            try object(
                token.extracting((segments.firstDot + 1)..<segments.secondDot),
                encoding: .payloadEncoding, json: .payload))
    }

    private static func object(
        _ segment: Span<UInt8>, encoding: TokenFormFault, json: TokenFormFault
    ) throws(TokenFormFault) -> JSONDocument {
        guard let text = Base64.url.decode(segment) else { throw encoding }
        guard let document = try? JSONDocument(text), document.kind(of: 0) == .object else {
            throw json
        }
        return document
    }

    /// Where the two dots are. An empty signature is let through: it belongs to `alg: none`, which
    /// has a more telling reason than its form.
    private struct Segments {
        let firstDot: Int
        let secondDot: Int

        init(_ token: Span<UInt8>) throws(TokenFormFault) {
            if token.isEmpty { throw .empty }
            guard token.count <= TokenLimits.tokenBytes else { throw .tooLong }
            let dot = UInt8(ascii: ".")
            guard let first = token.firstIndex(of: dot, from: 0),
                let second = token.firstIndex(of: dot, from: first + 1),
                token.firstIndex(of: dot, from: second + 1) == nil
            else { throw .segments }
            firstDot = first
            secondDot = second
        }
    }
}
