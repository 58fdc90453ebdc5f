internal import COpenSSL

/// Why a signing key could not be made or used: a machine without memory or randomness, or a text
/// that is no key.
public struct SigningKeyError: Error, Sendable {
    /// What was tried.
    public let operation: StaticString

    static func failed(_ operation: StaticString) -> SigningKeyError {
        OpenSSLErrors.drain()
        return SigningKeyError(operation: operation)
    }
}

/// An RSA key of a development issuer: signs with `RS256` and publishes its public half as a JWK.
///
/// `@unchecked Sendable` holds: the key is complete when `init` returns and never changes after;
/// OpenSSL signs with one `EVP_PKEY` on many threads, and each signature has a context of its own.
public final class SigningKey: @unchecked Sendable {
    private let key: OpaquePointer

    private init(owning key: OpaquePointer) {
        self.key = key
    }

    deinit {
        EVP_PKEY_free(key)
    }

    /// Makes a new key; takes 0.1 to 1 s.
    ///
    /// - Parameter bits: 2048 to 4096. Google's own tokens seen so far carry RSA-3072.
    public static func generate(bits: UInt32 = 2048) throws(SigningKeyError) -> SigningKey {
        guard let key = COpenSSL_EVP_RSA_gen(bits) else { throw .failed("generate") }
        return SigningKey(owning: key)
    }

    /// Reads a private key as PEM (RFC 7468).
    public convenience init(pem: String) throws(SigningKeyError) {
        var pem = pem
        let key = pem.withUTF8 { bytes -> OpaquePointer? in
            guard let source = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count))
            else { return nil }
            defer { BIO_free(source) }
            // OpenSSL's own way to a password is to ask the terminal.
            return PEM_read_bio_PrivateKey(source, nil, { _, _, _, _ in -1 }, nil)
        }
        guard let key else { throw .failed("read PEM") }
        guard EVP_PKEY_is_a(key, "RSA") == 1 else {
            EVP_PKEY_free(key)
            throw .failed("read an RSA key")
        }
        self.init(owning: key)
    }

    /// The private key as PEM (RFC 7468), unencrypted.
    public func pem() throws(SigningKeyError) -> String {
        guard let sink = BIO_new(BIO_s_mem()) else { throw .failed("write PEM") }
        defer { BIO_free(sink) }
        guard PEM_write_bio_PrivateKey(sink, key, nil, nil, 0, nil, nil) == 1 else {
            throw .failed("write PEM")
        }
        // Safe: BIO_read writes at most the capacity it is given.
        return String(unsafeUninitializedCapacity: 8192) { buffer in
            max(Int(BIO_read(sink, buffer.baseAddress, Int32(buffer.count))), 0)
        }
    }

    /// The signature of `bytes`: PKCS #1 v1.5 with SHA-256.
    public func signature(of bytes: Span<UInt8>) throws(SigningKeyError) -> [UInt8] {
        guard let context = EVP_MD_CTX_new() else { throw .failed("sign") }
        defer { EVP_MD_CTX_free(context) }
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1 else {
            throw .failed("sign")
        }
        var count = Int(EVP_PKEY_get_size(key))
        var signature = [UInt8](repeating: 0, count: count)
        // Safe: `count` is what OpenSSL may write, and what it may read is counted too.
        let outcome = bytes.withUnsafeBufferPointer { bytes in
            EVP_DigestSign(context, &signature, &count, bytes.baseAddress, bytes.count)
        }
        guard outcome == 1 else { throw .failed("sign") }
        return Array(signature.prefix(count))
    }

    /// Signs any two texts as header and payload of a compact JWS (RFC 7515, section 7.1): whether
    /// they make sense is the caller's affair.
    public func compactJWS(header: String, payload: String) throws(SigningKeyError) -> String {
        let input = Self.segment(header) + "." + Self.segment(payload)
        let signature = try signature(of: Array(input.utf8).span)
        return input + "." + String(decoding: Base64.url.encode(signature.span), as: UTF8.self)
    }

    private static func segment(_ text: String) -> String {
        String(decoding: Base64.url.encode(Array(text.utf8).span), as: UTF8.self)
    }

    /// The public half as a JWK (RFC 7517) for a key set.
    ///
    /// - Parameter keyID: The member `kid`: 1 to 128 characters of a key id.
    public func publicJWK(keyID: String) throws(SigningKeyError) -> String {
        let modulus = try number(OSSL_PKEY_PARAM_RSA_N)
        let exponent = try number(OSSL_PKEY_PARAM_RSA_E)
        return """
            {"kty":"RSA","use":"sig","alg":"RS256","kid":"\(keyID)","n":"\(modulus)","e":"\(exponent)"}
            """
    }

    /// A number of the key, big-endian, in base64url.
    private func number(_ name: String) throws(SigningKeyError) -> String {
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, name, &number) == 1, let number else {
            throw .failed("export")
        }
        defer { BN_free(number) }
        var bytes = [UInt8](repeating: 0, count: (Int(BN_num_bits(number)) + 7) / 8)
        // Safe: BN_bn2bin writes as many bytes as the number's bits fill.
        BN_bn2bin(number, &bytes)
        return String(decoding: Base64.url.encode(bytes.span), as: UTF8.self)
    }
}
