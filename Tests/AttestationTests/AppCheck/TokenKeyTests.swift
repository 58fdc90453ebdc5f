import Attestation
import TestKit
import Testing

@Suite("The key of a token")
struct TokenKeyTests {
    static let issuer = TestIssuer.standard

    @Test("verifies with keys of 2048, 3072 and 4096 bits", arguments: [2048, 3072, 4096])
    func sizes(bits: Int) throws {
        let issuer =
            switch bits {
            case 2048: TestIssuer.standard
            case 3072: TestIssuer.large
            default: TestIssuer(key: try SigningKey.generate(bits: 4096), keyID: "k4")
            }
        #expect(issuer.keySet.keys.map(\.modulusBitCount) == [bits])
        #expect(judge(issuer.token(), keySet: issuer.keySet) == .verified)
    }

    @Test("says which project's keys are missing, or which one's do not have the key")
    func noKeys() {
        #expect(judge(Self.issuer.token(), keySet: nil) == .keysUnavailable)
        #expect(judge(Self.issuer.token(), keySet: TestIssuer.other.keySet) == .unknownKey)
    }

    @Test("picks the key by its kid and tries no other")
    func choice() {
        let both = TestIssuer.keySet(of: [.standard, .other])
        #expect(judge(Self.issuer.token(), keySet: both) == .verified)
        #expect(judge(TestIssuer.other.token(), keySet: both) == .verified)
        #expect(
            judge(Self.issuer.token(header: ["kid": "\"k2\""]), keySet: both)
                == .invalid(.signature))
    }

    @Test("refuses a signature of any length but the modulus's")
    func signatureLength() throws {
        let segments = Self.issuer.token().split(separator: ".")
        let signature = try bytes(ofBase64URL: String(segments[2]))
        let wrong = [
            [], [0] + signature, signature + [0], Array(signature.dropLast()),
            Array(signature.dropFirst()), [UInt8](repeating: 0, count: 256),
            [UInt8](repeating: 0xFF, count: 256), [UInt8](repeating: 0, count: 384),
        ]
        for bytes in wrong {
            let token = "\(segments[0]).\(segments[1]).\(base64URL(bytes))"
            #expect(judge(token) == .invalid(.signature))
        }
    }

    @Test("K7: a key that has left the key set verifies nothing any more")
    func rotation() {
        let token = Self.issuer.token()
        #expect(judge(token, keySet: TestIssuer.keySet(of: [.standard, .other])) == .verified)
        #expect(judge(token, keySet: TestIssuer.keySet(of: [.other])) == .unknownKey)
    }
}
