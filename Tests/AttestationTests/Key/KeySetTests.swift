import Attestation
import TestKit
import Testing

@Suite("A key set")
struct KeySetTests {
    /// A good key, as the members of its JWK.
    static let jwk: [(name: String, json: String)] = {
        let modulus = (try? modulusBytes(of: .standard)) ?? []
        return [
            ("kty", "\"RSA\""), ("use", "\"sig\""), ("alg", "\"RS256\""), ("kid", "\"k1\""),
            ("n", "\"\(base64URL(modulus))\""), ("e", "\"AQAB\""),
        ]
    }()

    static func parse(_ json: String) -> Result<KeySet, KeySetError> {
        do throws(KeySetError) {
            return .success(try KeySet.parse(Array(json.utf8).span))
        } catch {
            return .failure(error)
        }
    }

    static func fault(_ json: String) -> KeySetError? {
        if case .failure(let error) = parse(json) { error } else { nil }
    }

    /// Puts a changed key next to a good one: which of the two are usable, and why the first is
    /// not.
    static func neighbours(_ replacing: [String: String?]) throws -> (
        usable: Int, SkippedKey.Reason?
    ) {
        let changed = TestIssuer.object(jwk, replacing: replacing)
        let good = TestIssuer.object(jwk, replacing: ["kid": "\"good\""])
        let keySet = try parse("{\"keys\":[\(changed),\(good)]}").get()
        #expect(keySet.key(for: Array("good".utf8).span) != nil)
        return (keySet.keys.count, keySet.skipped.first?.reason)
    }

    static func number(_ bytes: [UInt8]) -> String { "\"\(base64URL(bytes))\"" }

    @Test(
        "K5: keeps the usable keys next to a bad one",
        arguments: [
            (["kty": "\"AKP\""], .keyType), (["kty": "\"EC\"", "crv": "\"P-256\""], .keyType),
            (["kty": "\"oct\"", "k": "\"c2VjcmV0\""], .keyType), (["kty": "\"rsa\""], .keyType),
            (["kty": nil], .keyType), (["kty": "1"], .keyType), (["kid": nil], .keyID),
            (["kid": "\"\""], .keyID), (["kid": "7"], .keyID), (["kid": "\"../k\""], .keyID),
            (["kid": "\"\(String(repeating: "k", count: 129))\""], .keyID),
            (["use": "\"enc\""], .use), (["use": "\"SIG\""], .use), (["use": "null"], .use),
            (["key_ops": "[]"], .use), (["key_ops": "[\"sign\"]"], .use),
            (["key_ops": "\"verify\""], .use), (["alg": "\"RS384\""], .algorithm),
            (["alg": "\"PS256\""], .algorithm), (["alg": "\"RSA-OAEP\""], .algorithm),
            (["alg": "null"], .algorithm), (["d": "\"AQAB\""], .privateKey),
            (["n": nil], .encoding),
            (["n": "5"], .encoding), (["n": "\"A\""], .encoding), (["n": "\"AQAB=\""], .encoding),
            (["n": "\"+/+/\""], .encoding), (["n": "\"\""], .modulus),
            (["n": "\"AAAA\""], .modulus),
            (["e": nil], .encoding), (["e": "65537"], .encoding), (["e": "\"\""], .exponent),
            (["e": "\"AA\""], .exponent), (["e": "\"AQ\""], .exponent),
            (["e": "\"Ag\""], .exponent),
            (["e": "\"BA\""], .exponent), (["e": "\"AQAA\""], .exponent),
            (["e": "\"AQAAAAE\""], .exponent),
            (["e": "\"\(String(repeating: "_", count: 344))\""], .exponent),
        ] as [([String: String?], SkippedKey.Reason)])
    func badKey(replacing: [String: String?], reason: SkippedKey.Reason) throws {
        let (usable, skipped) = try Self.neighbours(replacing)
        #expect(usable == 1)
        #expect(skipped == reason)
        let alone = TestIssuer.object(Self.jwk, replacing: replacing)
        #expect(
            Self.fault("{\"keys\":[\(alone)]}")
                == .noUsableKey(skipped: [SkippedKey(index: 0, reason: reason)]))
    }

    @Test(
        "takes what is merely left out or added",
        arguments: [
            ["use": nil], ["alg": nil], ["key_ops": "[\"verify\"]"],
            ["key_ops": "[\"x\",\"verify\"]"],
            ["x5t": "\"abc\"", "x": "{\"y\":[1]}"], ["e": "\"AAEAAQ\""], ["e": "\"Aw\""],
            ["e": "\"_____w\""],
        ] as [[String: String?]])
    func goodKey(replacing: [String: String?]) throws {
        #expect(try Self.neighbours(replacing) == (2, nil))
    }

    @Test("K5: wants a modulus of 2048 to 4096 bits, and an odd one")
    func modulusSize() throws {
        let modulus = try modulusBytes(of: .standard)
        func outcome(_ bytes: [UInt8]) throws -> SkippedKey.Reason? {
            try Self.neighbours(["n": Self.number(bytes)]).1
        }
        #expect(try outcome([0x7F] + modulus.dropFirst()) == .modulus)
        #expect(try outcome(Array(modulus.dropFirst())) == .modulus)
        #expect(try outcome([0x80] + [UInt8](repeating: 1, count: 511)) == nil)
        #expect(try outcome([0x01] + [UInt8](repeating: 1, count: 512)) == .modulus)
        #expect(try outcome(modulus.dropLast() + [modulus[255] & 0xFE]) == .modulus)
    }

    @Test("K5: strips the zeros before a modulus, and verifies with it")
    func leadingZeros() throws {
        let modulus = try modulusBytes(of: .standard)
        let padded = TestIssuer.object(Self.jwk, replacing: ["n": Self.number([0, 0] + modulus)])
        let keySet = try Self.parse("{\"keys\":[\(padded)]}").get()
        #expect(keySet.keys.map(\.modulusBitCount) == [2048])
        #expect(judge(TestIssuer.standard.token(), keySet: keySet) == .verified)
    }

    @Test("K5: skips all keys with one kid, in any order, when one of them is another key")
    func duplicateKeyID() throws {
        let key = TestIssuer.object(Self.jwk, replacing: [:])
        let other = try TestIssuer.other.mint.key.publicJWK(keyID: "k1")
        let forAnother = TestIssuer.object(Self.jwk, replacing: ["use": "\"enc\""])
        let good = try TestIssuer.other.mint.key.publicJWK(keyID: "k2")
        for doubles in [
            [key, other], [other, key], [key, forAnother], [key, key, other], [key, other, key],
        ] {
            let list = (doubles + [good]).joined(separator: ",")
            let keySet = try Self.parse("{\"keys\":[\(list)]}").get()
            #expect(keySet.keyIDs == ["k2"])
            #expect(keySet.skipped.allSatisfy { $0.reason == .duplicateKeyID })
            #expect(keySet.skipped.count == doubles.count)
            #expect(judge(TestIssuer.standard.token(), keySet: keySet) == .unknownKey)
        }
    }

    @Test("K5: takes a key that is written twice once")
    func repeatedKey() throws {
        let key = TestIssuer.object(Self.jwk, replacing: [:])
        let escaped = TestIssuer.object(Self.jwk, replacing: ["kid": "\"k\\u0031\""])
        let keySet = try Self.parse("{\"keys\":[\(key),\(escaped),\(key)]}").get()
        #expect(keySet.keyIDs == ["k1"])
        #expect(keySet.skipped.map(\.reason) == [.duplicateKeyID, .duplicateKeyID])
        #expect(judge(TestIssuer.standard.token(), keySet: keySet) == .verified)
    }

    @Test("K5: skips keys that are no objects, and keys beyond the hundredth")
    func strangeElements() throws {
        let key = TestIssuer.object(Self.jwk, replacing: [:])
        let keySet = try Self.parse("{\"keys\":[1,null,\"x\",[],{},\(key)]}").get()
        #expect(
            keySet.skipped.map(\.reason)
                == [.notObject, .notObject, .notObject, .notObject, .keyType])
        let many = (0..<250).map { TestIssuer.object(Self.jwk, replacing: ["kid": "\"m\($0)\""]) }
        let large = try Self.parse("{\"keys\":[\(many.joined(separator: ","))]}").get()
        #expect(large.keys.count == KeySet.maximumKeyCount)
        #expect(large.skipped == [SkippedKey(index: 100, reason: .tooMany)])
    }

    @Test("K5: refuses bodies that are no key set, and says what they are")
    func noKeySet() {
        let key = TestIssuer.object(Self.jwk, replacing: [:])
        let bodies: [(String, KeySetError)] = [
            ("", .notJSON), ("<html><body>Sorry</body></html>", .notJSON),
            ("\u{1F}\u{8B}\u{8}", .notJSON),
            ("{\"keys\":[\(key)]", .notJSON), ("{\"keys\":[\(key)]}}", .notJSON),
            ("{\"keys\":[\(key)],\"keys\":[]}", .notJSON), ("[\(key)]", .notJSON),
            ("null", .notJSON),
            (String(repeating: "[", count: 100_000), .notJSON), ("{}", .notKeySet),
            (key, .notKeySet),
            ("{\"keys\":{\"0\":\(key)}}", .notKeySet), ("{\"keys\":null}", .notKeySet),
            ("{\"Keys\":[\(key)]}", .notKeySet), ("{\"keys\":[]}", .noUsableKey(skipped: [])),
            ("{\"keys\":[\(key)]}" + String(repeating: " ", count: 5 << 20), .tooLong),
        ]
        for (body, error) in bodies { #expect(Self.fault(body) == error) }
    }

    @Test("reads one object of a thousand keys in one go, not in the square of it")
    func manyElements() {
        let empty = String(repeating: "{},", count: 300_000) + "{}"
        #expect(Self.fault("{\"keys\":[\(empty)]}")?.word.description == "no_usable_key")
    }

    @Test("finds a key by exactly its kid")
    func lookup() throws {
        let keySet = TestIssuer.keySet(of: [.standard, .other])
        #expect(keySet.keyIDs == ["k1", "k2"])
        #expect(keySet.key(for: Array("k2".utf8).span)?.keyID == "k2")
        for kid in ["", "k", "K1", "k11", "k1 "] {
            #expect(keySet.key(for: Array(kid.utf8).span) == nil)
        }
    }
}
