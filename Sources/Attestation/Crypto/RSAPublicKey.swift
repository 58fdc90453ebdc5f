internal import COpenSSL
internal import Synchronization

/// An RSA public key that verifies signatures of `RS256`: PKCS #1 v1.5 with SHA-256
/// (RFC 7518, section 3.3).
///
/// OpenSSL multiplies, and the few steps around that are here: docs/decisions/0043-rsa.md says why,
/// and what makes it as strict as can be.
///
/// `@unchecked Sendable` holds: all numbers are complete when `init` returns and only read after; a
/// workspace belongs to the one call that made it or took it out of `idle`.
final class RSAPublicKey: @unchecked Sendable {
    /// `DigestInfo` of SHA-256 up to the digest (RFC 8017, section 9.2, note 1).
    private static let digestInfo: [UInt8] = [
        0x30, 0x31, 0x30, 0x0D, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01,
        0x05, 0x00, 0x04, 0x20,
    ]
    private static let digestByteCount = 32

    /// Length of the modulus in bytes, which is the length of every signature.
    let signatureByteCount: Int

    private let modulus: OpaquePointer
    private let montgomery: OpaquePointer
    private let exponent: UInt32
    /// The encoded message (RFC 8017, section 9.2) with zeros in place of the digest.
    private let frame: OpaquePointer
    /// Temporary numbers that nobody uses: making new ones for each signature would cost as much as
    /// two of the eighteen multiplications.
    private let idle = Atomic<OpaquePointer?>(nil)

    /// Builds a key, or returns nil for numbers that are no RSA key of at least 1024 bits.
    ///
    /// - Parameters:
    ///   - modulus: Big-endian, without leading zeros; odd.
    ///   - exponent: Big-endian, up to four bytes; odd, and at least 3.
    init?(modulus: Span<UInt8>, exponent: Span<UInt8>) {
        guard modulus.count >= 128, modulus[0] != 0, modulus[modulus.count - 1] & 1 == 1,
            1...4 ~= exponent.count
        else { return nil }
        var power: UInt32 = 0
        for index in exponent.indices { power = power << 8 | UInt32(exponent[index]) }
        guard power >= 3, power & 1 == 1 else { return nil }
        let frame = Self.frame(byteCount: modulus.count)
        guard let numbers = Self.numbers(modulus, frame.span) else {
            OpenSSLErrors.drain()
            return nil
        }
        (self.modulus, montgomery, self.frame) = numbers
        self.exponent = power
        signatureByteCount = modulus.count
    }

    deinit {
        BN_CTX_free(idle.load(ordering: .acquiring))
        BN_free(frame)
        BN_MONT_CTX_free(montgomery)
        BN_free(modulus)
    }

    /// Whether `signature` is this key's signature of the bytes whose SHA-256 is `digest`: RFC 8017,
    /// section 8.2.2.
    func isSignature(_ signature: Span<UInt8>, of digest: SHA256Digest) -> Bool {
        guard signature.count == signatureByteCount else { return false }
        guard let workspace = idle.exchange(nil, ordering: .acquiring) ?? BN_CTX_new() else {
            OpenSSLErrors.drain()
            return false
        }
        BN_CTX_start(workspace)
        let outcome = isSignature(signature, of: digest, workspace)
        BN_CTX_end(workspace)
        guard let outcome else {
            // OpenSSL could not calculate, most likely for lack of memory.
            BN_CTX_free(workspace)
            OpenSSLErrors.drain()
            return false
        }
        // Two loops that verify with one key at a time had two of them; one stays.
        BN_CTX_free(idle.exchange(workspace, ordering: .acquiringAndReleasing))
        return outcome
    }

    /// nil when OpenSSL failed.
    private func isSignature(
        _ signature: Span<UInt8>, of digest: SHA256Digest, _ workspace: OpaquePointer
    ) -> Bool? {
        guard let base = BN_CTX_get(workspace), let scaledBase = BN_CTX_get(workspace),
            let message = BN_CTX_get(workspace), let expected = BN_CTX_get(workspace),
            Self.set(base, signature)
        else { return nil }
        // Section 5.2.2, step 1: another number of the same residue class is no second signature.
        guard BN_ucmp(base, modulus) < 0 else { return false }
        guard raise(base, scaledBase, into: message, workspace),
            Self.set(expected, digest.bytes.span), BN_uadd(expected, expected, frame) == 1
        else { return nil }
        // The whole encoded message is compared, nothing of the signer's is parsed: there is no
        // place to hide anything in (section 9.2, and Bleichenbacher's forgery of 2006).
        return BN_ucmp(message, expected) == 0
    }

    /// Raises `base` to the exponent. False when OpenSSL failed.
    private func raise(
        _ base: OpaquePointer, _ scaledBase: OpaquePointer, into power: OpaquePointer,
        _ workspace: OpaquePointer
    ) -> Bool {
        // Products of two scaled numbers are scaled; the last factor is not, and takes the scale
        // off. The exponent is odd, so there is such a factor.
        guard BN_to_montgomery(scaledBase, base, montgomery, workspace) == 1 else { return false }
        var factor = scaledBase
        var bit = UInt32(31 - exponent.leadingZeroBitCount)
        while bit > 0 {
            bit -= 1
            guard BN_mod_mul_montgomery(power, factor, factor, montgomery, workspace) == 1 else {
                return false
            }
            factor = power
            if exponent >> bit & 1 == 0 { continue }
            let other = bit == 0 ? base : scaledBase
            guard BN_mod_mul_montgomery(power, power, other, montgomery, workspace) == 1 else {
                return false
            }
        }
        return true
    }

    // MARK: Numbers

    private static func frame(byteCount: Int) -> [UInt8] {
        let padding = byteCount - 3 - digestInfo.count - digestByteCount
        return [0x00, 0x01] + [UInt8](repeating: 0xFF, count: padding) + [0x00] + digestInfo
            + [UInt8](repeating: 0, count: digestByteCount)
    }

    /// The modulus, its Montgomery form, and the frame; the caller frees them.
    private static func numbers(
        _ modulus: Span<UInt8>, _ frame: Span<UInt8>
    ) -> (OpaquePointer, OpaquePointer, OpaquePointer)? {
        let workspace = BN_CTX_new()
        let (number, montgomery, frameNumber) = (BN_new(), BN_MONT_CTX_new(), BN_new())
        defer { BN_CTX_free(workspace) }
        guard let workspace, let number, let montgomery, let frameNumber,
            set(number, modulus), set(frameNumber, frame),
            BN_MONT_CTX_set(montgomery, number, workspace) == 1
        else {
            BN_free(number)
            BN_MONT_CTX_free(montgomery)
            BN_free(frameNumber)
            return nil
        }
        return (number, montgomery, frameNumber)
    }

    /// False when OpenSSL failed.
    private static func set(_ number: OpaquePointer, _ bytes: Span<UInt8>) -> Bool {
        // Safe: BN_bin2bn reads `count` bytes. A key set is at most 1 MiB long, so the count fits.
        bytes.withUnsafeBufferPointer {
            BN_bin2bn($0.baseAddress, Int32(truncatingIfNeeded: $0.count), number) != nil
        }
    }
}
