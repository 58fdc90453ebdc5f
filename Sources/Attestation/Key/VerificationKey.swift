/// A key of a key set, ready to verify signatures.
public final class VerificationKey: Sendable {
    /// The member `kid` of the key (RFC 7517, section 4.5).
    public let keyID: String

    /// SHA-256 of the numbers of the key: two keys are the same when this is, whatever their `kid`.
    let material: SHA256Digest
    /// 2048 to 4096 bits.
    let publicKey: RSAPublicKey
    private let keyIDBytes: [UInt8]

    init(keyID: Span<UInt8>, material: SHA256Digest, publicKey: RSAPublicKey) {
        self.keyID = keyID.text()
        self.keyIDBytes = keyID.copied()
        self.material = material
        self.publicKey = publicKey
    }

    /// Length of the modulus in bits, rounded up to whole bytes.
    public var modulusBitCount: Int { publicKey.signatureByteCount * 8 }

    @inline(__always)
    func has(keyID: Span<UInt8>) -> Bool {
        let mine = keyIDBytes
        return mine.span.equals(keyID)
    }
}

/// What a `kid` may be, in a token as in a key set.
enum KeyID {
    /// Google's have six characters. A longer one, or one with quotes, slashes, controls, is
    /// nobody's key but somebody's attempt at whatever prints it (pitfall T4).
    static func isValid(_ bytes: Span<UInt8>) -> Bool {
        guard 1...128 ~= bytes.count else { return false }
        for index in bytes.indices {
            switch bytes[index] {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                continue
            case let byte where ("_.-+=:@~" as StaticString).contains(byte):
                continue
            default:
                return false
            }
        }
        return true
    }
}
