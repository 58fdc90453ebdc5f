/// A key as RFC 7517 and RFC 7518, section 6.3.1, write it.
enum JSONWebKey {
    struct Refusal: Error {
        let reason: SkippedKey.Reason
    }

    /// Reads one element of a key set, and refuses every key that must not verify `RS256`.
    static func read(_ key: Int, of document: JSONDocument) -> Result<VerificationKey, Refusal> {
        do throws(Refusal) {
            return .success(try verificationKey(key, of: document))
        } catch {
            return .failure(error)
        }
    }

    private static func verificationKey(
        _ key: Int, of document: JSONDocument
    ) throws(Refusal) -> VerificationKey {
        guard document.kind(of: key) == .object else { throw Refusal(reason: .notObject) }
        guard has(key, "kty", "RSA", of: document) == true else { throw Refusal(reason: .keyType) }
        guard let member = document.member("kid", of: key), let keyID = document.string(member),
            KeyID.isValid(keyID)
        else { throw Refusal(reason: .keyID) }
        try checkPurpose(key, of: document)
        let modulus = try number("n", of: key, document)
        let exponent = try number("e", of: key, document)
        try checkSize(modulus: modulus.span, exponent: exponent.span)
        guard let publicKey = RSAPublicKey(modulus: modulus.span, exponent: exponent.span) else {
            throw Refusal(reason: .unusable)
        }
        // The exponent has at most four bytes and the modulus at least 256, so the seam is
        // unambiguous.
        let material = SHA256.hash(modulus.span, exponent.span)
        return VerificationKey(keyID: keyID, material: material, publicKey: publicKey)
    }

    /// Google leaves out `use` in places; what is there must allow verification (RFC 7517, section
    /// 4).
    private static func checkPurpose(
        _ key: Int, of document: JSONDocument
    ) throws(Refusal) {
        if has(key, "use", "sig", of: document) == false { throw Refusal(reason: .use) }
        if has(key, "alg", "RS256", of: document) == false { throw Refusal(reason: .algorithm) }
        if let operations = document.member("key_ops", of: key) {
            let verifies = document.elements(of: operations).contains { operation in
                document.string(operation)?.equals("verify") ?? false
            }
            guard verifies else { throw Refusal(reason: .use) }
        }
        // Whoever can read the set can sign with such a key.
        if document.member("d", of: key) != nil { throw Refusal(reason: .privateKey) }
    }

    private static func checkSize(
        modulus: Span<UInt8>, exponent: Span<UInt8>
    ) throws(Refusal) {
        guard let first = modulus.count == 0 ? nil : modulus[0] else {
            throw Refusal(reason: .modulus)
        }
        let bits = modulus.count * 8 - first.leadingZeroBitCount
        guard 2048...4096 ~= bits, modulus[modulus.count - 1] & 1 == 1 else {
            throw Refusal(reason: .modulus)
        }
        // 3 to 2^32 - 1, odd: an even one is no RSA exponent, and a huge one costs a verification
        // each.
        guard 1...4 ~= exponent.count, exponent[exponent.count - 1] & 1 == 1,
            exponent.count > 1 || exponent[0] >= 3
        else { throw Refusal(reason: .exponent) }
    }

    /// A big-endian number without leading zeros: some libraries write one
    /// (docs/app-check-tokens.md 2).
    private static func number(
        _ name: StaticString, of key: Int, _ document: JSONDocument
    ) throws(Refusal) -> [UInt8] {
        guard let member = document.member(name, of: key), let text = document.string(member),
            let bytes = Base64.url.decode(text)
        else { throw Refusal(reason: .encoding) }
        return Array(bytes.drop { $0 == 0 })
    }

    /// Whether a member has the value; nil when it is absent.
    private static func has(
        _ key: Int, _ name: StaticString, _ value: StaticString, of document: JSONDocument
    ) -> Bool? {
        guard let member = document.member(name, of: key) else { return nil }
        return document.string(member)?.equals(value) ?? false
    }
}
