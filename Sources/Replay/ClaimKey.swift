public import Attestation

/// What makes two presented tokens the same token: 128 bits of a SHA-256 that stores keep instead of
/// the token, so no store, however it is read, gives a token away.
///
/// Keys of different projects never meet, because the issuer is hashed first; a token with `jti` is
/// known by that (equal `jti`s are one token by Google's rule), one without by the bytes that its
/// signature covers. Who wants two tokens to collide has to have both signed.
public struct ClaimKey: Hashable, Sendable {
    /// The first eight bytes of the digest, big-endian.
    public let high: UInt64
    /// The eight bytes behind them.
    public let low: UInt64

    /// A key that was stored before.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The key of a token with an id.
    ///
    /// - Parameters:
    ///   - issuer: Claim `iss`, which the verifier has compared with the project's.
    ///   - tokenID: Claim `jti`, 1 byte to whatever a token may hold.
    public init(issuer: String, tokenID: String) {
        var hash = SHA256()
        Self.add(issuer, to: &hash)
        hash.update(UInt8(ascii: "j"))
        Self.add(tokenID, to: &hash)
        self.init(hash.finalize())
    }

    /// The key of a token without an id.
    ///
    /// - Parameters:
    ///   - issuer: Claim `iss`.
    ///   - signedBytes: Header and payload as they were sent: base64url with the dot in between.
    public init(issuer: String, signedBytes: Span<UInt8>) {
        var hash = SHA256()
        Self.add(issuer, to: &hash)
        hash.update(UInt8(ascii: "t"))
        hash.update(signedBytes)
        self.init(hash.finalize())
    }

    /// The key of a verified token.
    ///
    /// - Parameters:
    ///   - issuer: Its claim `iss`.
    ///   - text: The whole token as it was sent. Its signature is left out: whoever finds a second
    ///     one for the same bytes has no second token.
    public init(of token: VerifiedToken, issuer: String, text: Span<UInt8>) {
        if let id = token.tokenID {
            self.init(issuer: issuer, tokenID: id)
            return
        }
        var end = text.count
        while end > 0 && text[end - 1] != UInt8(ascii: ".") { end -= 1 }
        self.init(issuer: issuer, signedBytes: text.extracting(first: max(0, end - 1)))
    }

    private init(_ digest: SHA256Digest) {
        var words: (UInt64, UInt64) = (0, 0)
        for index in 0..<8 {
            words.0 = words.0 << 8 | UInt64(digest.bytes[index])
            words.1 = words.1 << 8 | UInt64(digest.bytes[index + 8])
        }
        self.init(high: words.0, low: words.1)
    }

    /// Adds a text and an end that no issuer has, so that what follows cannot be taken for a part of
    /// it.
    private static func add(_ text: String, to hash: inout SHA256) {
        var text = text
        text.withUTF8 { hash.update($0.span) }
        hash.update(0)
    }
}
