import Attestation
import TestKit
import Testing

@Suite("The form of a token")
struct TokenFormTests {
    static let issuer = TestIssuer.standard
    static let token = issuer.token()
    static let segments = token.split(separator: ".").map(String.init)

    @Test(
        "T12: refuses a second spelling of a token",
        arguments: [
            token + "=", token + "==", token + " ", token + "\n", token + "\u{0}", token + ".",
            "\(segments[0])=.\(segments[1]).\(segments[2])",
            "\(segments[0]).\(segments[1])=.\(segments[2])",
            "\(segments[0]).\(segments[1])==.\(segments[2])", "Bearer " + token, "\"\(token)\"",
            token.replacing(".", with: "%2E"), token + "," + token, token.lowercased(),
        ])
    func secondSpelling(spelling: String) {
        #expect(judge(Self.token) == .verified)
        #expect(judge(spelling) == .invalid(.malformed))
    }

    @Test("T12: refuses stray bits in the last character of the signature")
    func strayBits() throws {
        // 256 bytes leave two bits of the last character's six.
        let last = try #require(Self.token.last)
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let value = try #require(alphabet.firstIndex(of: last))
        for stray in 1..<16 {
            let other = alphabet[value + stray]
            #expect(judge(Self.token.dropLast() + String(other)) == .invalid(.malformed))
        }
    }

    @Test("T12: refuses a signature to which the modulus was added")
    func unreducedSignature() throws {
        let modulus = try modulusBytes(of: Self.issuer)
        var tried = 0
        // A sum that still fits in 256 bytes is found in about every fourth token.
        for number in 0..<200 where tried < 3 {
            let token = Self.issuer.token(claims: ["jti": "\"\(number)\""])
            let segments = token.split(separator: ".")
            let signature = try bytes(ofBase64URL: String(segments[2]))
            guard let sum = add(signature, modulus) else { continue }
            tried += 1
            #expect(judge(token) == .verified)
            #expect(
                judge("\(segments[0]).\(segments[1]).\(base64URL(sum))") == .invalid(.signature))
        }
        #expect(tried == 3)
    }

    @Test("T12: verifies no token in which any one byte was changed, left out or put in")
    func singleByteChanges() {
        let verifier = TokenVerifier(projects: [TestIssuer.project])
        let keySet = Self.issuer.keySet
        let original = Array(Self.token.utf8)
        func isVerified(_ bytes: [UInt8]) -> Bool {
            Outcome(verifier.verify(bytes.span, now: TestIssuer.now) { _ in keySet }) == .verified
        }
        #expect(isVerified(original))
        var accepted: [[UInt8]] = []
        let strangers = Array("=.+/-_ A\u{0}\n\u{7F}".utf8) + [0x80, 0xFF]
        for index in original.indices {
            let flips = (0..<8).map { original[index] ^ 1 << $0 }
            for byte in flips + strangers where byte != original[index] {
                var changed = original
                changed[index] = byte
                if isVerified(changed) { accepted.append(changed) }
            }
            var shorter = original
            shorter.remove(at: index)
            if isVerified(shorter) { accepted.append(shorter) }
            var longer = original
            longer.insert(UInt8(ascii: "A"), at: index)
            if isVerified(longer) { accepted.append(longer) }
        }
        #expect(accepted == [])
    }

    @Test("T13: refuses what is longer than 8192 bytes before it decodes anything")
    func tooLong() {
        // The padding of white space is legal JSON: only the length is wrong.
        func token(ofBytes count: Int) -> String {
            let base = Self.issuer.token(headerJSON: "{}", payloadJSON: "{}").utf8.count
            let claims = TestIssuer.object(
                TestIssuer.claims(issuer: TestIssuer.project.issuer, now: TestIssuer.now),
                replacing: [:])
            let header = TestIssuer.object(TestIssuer.header(keyID: "k1"), replacing: [:])
            // Grows the payload by single bytes until the encoded token has the length.
            var spaces = max(
                (count - base - (header.utf8.count + claims.utf8.count) * 4 / 3) / 4 * 3, 0)
            while true {
                let payload = claims + String(repeating: " ", count: spaces)
                let token = Self.issuer.token(headerJSON: header, payloadJSON: payload)
                if token.utf8.count >= count { return token }
                spaces += 1
            }
        }
        let longest = token(ofBytes: 8191)
        #expect(8191...8192 ~= longest.utf8.count)
        #expect(judge(longest) == .verified)
        #expect(judge(token(ofBytes: 8193)) == .invalid(.malformed))
        #expect(judge(String(repeating: "a", count: 1 << 20)) == .invalid(.malformed))
    }

    @Test(
        "T13: refuses any number of segments but three",
        arguments: [
            "", ".", "..", "...", "....", "a", "a.b", segments[0], "\(segments[0]).\(segments[1])",
            token + ".", "." + token, token + ".e30.e30", "\(segments[0])..\(segments[2])",
            ".\(segments[1]).\(segments[2])",
        ])
    func segmentCount(token: String) {
        #expect(judge(token) == .invalid(.malformed))
    }

    @Test(
        "T14: takes the SDK's placeholder for a failed attestation, and asks for no key",
        arguments: [
            "eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ==",  // {"error":"UNKNOWN_ERROR"}
            "eyJlcnJvciI6Im90aGVyIn0=",  // {"error":"other"}
            "eyAiZXJyb3IiIDogIlRIUk9UVExFRCIgfQ==",  // { "error" : "THROTTLED" }
            "eyJlcnJvciI6eyJjb2RlIjo0MDN9fQ==",  // {"error":{"code":403}}
        ])
    func placeholder(token: String) {
        let verifier = TokenVerifier(projects: [TestIssuer.project])
        let verdict = verifier.verify(Array(token.utf8).span, now: TestIssuer.now) { _ in
            Issue.record("asked for a key set")
            return nil
        }
        #expect(Outcome(verdict) == .attestationFailed)
        #expect(judge(token) == .attestationFailed)
    }

    @Test(
        "T14: takes nothing else for it",
        arguments: [
            "eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ=", "eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ",
            "eyJFcnJvciI6IlVOS05PV05fRVJST1IifQ==", "WyJlcnJvciIsImFiYyJd",
            "eyJlcnJvciI6IlVOS05PV05fRVJST1IifR==",
        ])
    func noPlaceholder(token: String) {
        #expect(judge(token) == .invalid(.malformed))
    }

    @Test(
        "knows a debug secret for what it is",
        arguments: [
            "6F9619FF-8B86-D011-B42D-00C04FC964FF", "6f9619ff-8b86-d011-b42d-00c04fc964ff",
            "00000000-0000-0000-0000-000000000000",
        ])
    func debugSecret(secret: String) {
        #expect(judge(secret) == .debugSecret)
        #expect(judge(String(secret.dropLast())) == .invalid(.malformed))
        #expect(judge(secret + "0") == .invalid(.malformed))
        #expect(judge(secret.replacing("-", with: "_")) == .invalid(.malformed))
        #expect(judge("g" + secret.dropFirst()) == .invalid(.malformed))
    }

    @Test("sees a token of a served issuer where none belongs, verified or not")
    func tokenInURL() {
        let verifier = TokenVerifier(projects: [TestIssuer.project])
        func isToken(_ value: String) -> Bool {
            verifier.isTokenOfServedIssuer(Array(value.utf8).span)
        }
        #expect(isToken(Self.token))
        #expect(isToken(TestIssuer.other.token(claims: ["exp": "1", "iat": "0"])))
        #expect(isToken("e30.\(Self.segments[1])."))
        #expect(!isToken(Self.issuer.token(claims: ["iss": "\"https://example.com/123\""])))
        #expect(!isToken(Self.issuer.token(claims: ["iss": nil])))
        #expect(!isToken(""))
        #expect(!isToken("a.b.c"))
        #expect(!isToken("1.2.3"))
        #expect(!isToken(Self.segments[1]))
    }
}
