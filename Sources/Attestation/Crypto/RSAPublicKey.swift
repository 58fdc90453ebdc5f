internal import COpenSSL
internal import Synchronization

/// An RSA public key that verifies signatures of `RS256`: PKCS #1 v1.5 with SHA-256
/// (RFC 7518, section 3.3).
///
/// `@unchecked Sendable` holds: `key` and `prototype` are complete when `init` returns and never
/// change after. Verification works on a copy of `prototype`, and making one only reads it and
/// raises atomic reference counts; a copy belongs to the one call that made it or took it out of
/// `idle`. The key's lazily made Montgomery form is guarded by OpenSSL's own lock.
final class RSAPublicKey: @unchecked Sendable {
    /// Length of the modulus in bytes, which is the length of every signature.
    let signatureByteCount: Int

    private let key: OpaquePointer
    /// Set up once for verification: a copy costs 0.2 µs, where a new context fetches its
    /// algorithms for 2.5 µs, a fifth of an RSA-2048 verification.
    private let prototype: OpaquePointer
    /// A copy that nobody uses: a context verifies any number of signatures one after the other
    /// (EVP_PKEY_verify(3)).
    private let idle = Atomic<OpaquePointer?>(nil)

    /// Builds a key, or returns nil for numbers that OpenSSL does not take.
    ///
    /// - Parameters:
    ///   - modulus: Big-endian.
    ///   - exponent: Big-endian.
    init?(modulus: Span<UInt8>, exponent: Span<UInt8>) {
        guard let key = Self.makeKey(modulus: modulus, exponent: exponent) else {
            OpenSSLErrors.drain()
            return nil
        }
        guard let prototype = Self.makePrototype(key) else {
            EVP_PKEY_free(key)
            OpenSSLErrors.drain()
            return nil
        }
        self.key = key
        self.prototype = prototype
        signatureByteCount = Int(EVP_PKEY_get_size(key))
    }

    deinit {
        EVP_PKEY_CTX_free(idle.load(ordering: .acquiring))
        EVP_PKEY_CTX_free(prototype)
        EVP_PKEY_free(key)
    }

    /// Whether `signature` is this key's signature of the bytes whose SHA-256 is `digest`.
    func isSignature(_ signature: Span<UInt8>, of digest: SHA256Digest) -> Bool {
        guard signature.count == signatureByteCount else { return false }
        guard
            let context = idle.exchange(nil, ordering: .acquiring) ?? EVP_PKEY_CTX_dup(prototype)
        else {
            OpenSSLErrors.drain()
            return false
        }
        // Safe: both pointers are read for exactly the counts that go with them.
        let outcome = signature.withUnsafeBufferPointer { signature in
            digest.bytes.span.withUnsafeBufferPointer { digest in
                EVP_PKEY_verify(
                    context, signature.baseAddress, signature.count, digest.baseAddress,
                    digest.count)
            }
        }
        guard outcome == 1 else {
            // Not used again: what a failure leaves behind in a context is OpenSSL's affair.
            EVP_PKEY_CTX_free(context)
            OpenSSLErrors.drain()
            return false
        }
        // Two loops that verify with one key at a time had two copies; one stays.
        EVP_PKEY_CTX_free(idle.exchange(context, ordering: .acquiringAndReleasing))
        return true
    }

    private static func makeKey(modulus: Span<UInt8>, exponent: Span<UInt8>) -> OpaquePointer? {
        let n = number(modulus)
        let e = number(exponent)
        defer {
            BN_free(n)
            BN_free(e)
        }
        guard let n, let e, let builder = OSSL_PARAM_BLD_new() else { return nil }
        defer { OSSL_PARAM_BLD_free(builder) }
        guard COpenSSL_OSSL_PARAM_BLD_push_RSA_N(builder, n) == 1,
            COpenSSL_OSSL_PARAM_BLD_push_RSA_E(builder, e) == 1,
            let parameters = OSSL_PARAM_BLD_to_param(builder)
        else { return nil }
        defer { OSSL_PARAM_free(parameters) }
        guard let context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else { return nil }
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_fromdata_init(context) == 1,
            EVP_PKEY_fromdata(context, &key, COpenSSL_EVP_PKEY_PUBLIC_KEY(), parameters) == 1
        else { return nil }
        return key
    }

    private static func makePrototype(_ key: OpaquePointer) -> OpaquePointer? {
        guard let context = EVP_PKEY_CTX_new(key, nil) else { return nil }
        guard EVP_PKEY_verify_init(context) == 1,
            EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1,
            EVP_PKEY_CTX_set_signature_md(context, EVP_sha256()) == 1
        else {
            EVP_PKEY_CTX_free(context)
            return nil
        }
        return context
    }

    /// The caller frees the result.
    private static func number(_ bytes: Span<UInt8>) -> OpaquePointer? {
        // Safe: BN_bin2bn reads `count` bytes. A key set is at most 1 MiB long, so the count fits.
        bytes.withUnsafeBufferPointer {
            BN_bin2bn($0.baseAddress, Int32(truncatingIfNeeded: $0.count), nil)
        }
    }
}
