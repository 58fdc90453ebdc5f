import TestKit
import Testing

@testable import Attestation

@Suite("RSA public keys")
struct RSAPublicKeyTests {
    static let message = Array("a message".utf8)
    static let digest = SHA256.hash(message.span)

    static func signature() throws -> [UInt8] {
        try TestIssuer.standard.mint.key.signature(of: message.span)
    }

    static var key: RSAPublicKey { TestIssuer.standard.keySet.keys[0].publicKey }

    static func accepts(_ signature: [UInt8], of digest: SHA256Digest = digest) -> Bool {
        key.isSignature(signature.span, of: digest)
    }

    @Test("a bad signature does not change what is said of the next one")
    func order() throws {
        let good = try Self.signature()
        for place in good.indices {
            var bad = good
            bad[place] ^= 1
            #expect(!Self.accepts(bad))
            #expect(Self.accepts(good))
        }
        let other = SHA256.hash(Array("another".utf8).span)
        #expect(!Self.accepts(good, of: other))
        #expect(!Self.accepts(Array(good.dropLast())))
        #expect(Self.accepts(good))
    }

    private static func accepts(_ signature: [UInt8], by key: RSAPublicKey) -> Bool {
        key.isSignature(signature.span, of: digest)
    }

    private static func isKey(_ modulus: [UInt8], _ exponent: [UInt8]) -> Bool {
        RSAPublicKey(modulus: modulus.span, exponent: exponent.span) != nil
    }

    private static func key(_ modulus: String, _ exponent: [UInt8]) throws -> RSAPublicKey {
        let modulus = RSAVectors.bytes(modulus)
        let key = RSAPublicKey(modulus: modulus.span, exponent: exponent.span)
        return try #require(key)
    }

    @Test("any exponent of a key set verifies")
    func exponents() throws {
        let small = try Self.key(RSAVectors.modulus, RSAVectors.exponent)
        let large = try Self.key(RSAVectors.otherModulus, RSAVectors.otherExponent)
        let good = RSAVectors.bytes(RSAVectors.good)
        let otherGood = RSAVectors.bytes(RSAVectors.otherGood)
        #expect(Self.accepts(good, by: small))
        #expect(Self.accepts(otherGood, by: large))
        #expect(!Self.accepts(otherGood, by: small))
        #expect(!Self.accepts(good, by: large))
    }

    @Test("only the one encoding of a digest is a signature", arguments: RSAVectors.forged)
    func forged(_ what: String, _ signature: String) throws {
        let key = try Self.key(RSAVectors.modulus, RSAVectors.exponent)
        let signature = RSAVectors.bytes(signature)
        #expect(signature.count == key.signatureByteCount)
        #expect(!Self.accepts(signature, by: key))
    }

    @Test("0, 1 and the numbers around the modulus are no signatures")
    func edges() throws {
        let key = try Self.key(RSAVectors.modulus, RSAVectors.exponent)
        let modulus = RSAVectors.bytes(RSAVectors.modulus)
        let zero = [UInt8](repeating: 0, count: modulus.count)
        let highest = [UInt8](repeating: 0xFF, count: modulus.count)
        let one: [UInt8] = zero.dropLast() + [1]
        var below = modulus
        below[below.count - 1] -= 1
        for number in [zero, one, below, modulus, highest] {
            #expect(!Self.accepts(number, by: key))
        }
    }

    @Test("numbers that are no key are refused")
    func noKeys() {
        let modulus = RSAVectors.bytes(RSAVectors.modulus)
        #expect(Self.isKey(modulus, [3]))
        for exponent in [[], [0], [1], [2], [1, 0, 0], [1, 0, 0, 0, 1]] as [[UInt8]] {
            #expect(!Self.isKey(modulus, exponent))
        }
        let even: [UInt8] = modulus.dropLast() + [2]
        for modulus in [[], even, [0] + modulus, Array(modulus.suffix(127))] {
            #expect(!Self.isKey(modulus, [3]))
        }
    }

    @Test("one key verifies for many threads at once")
    func threads() async throws {
        let good = try Self.signature()
        var bad = good
        bad[17] ^= 0x80
        let (key, wrong) = (Self.key, bad)
        let mistakes = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 {
                group.addTask { @concurrent in
                    (0..<100).count { turn in
                        let isGood = (task + turn) % 3 != 0
                        let bytes = isGood ? good : wrong
                        return key.isSignature(bytes.span, of: Self.digest) != isGood
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(mistakes == 0)
    }
}
