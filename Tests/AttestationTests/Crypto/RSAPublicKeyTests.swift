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
