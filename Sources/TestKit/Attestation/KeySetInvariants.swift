internal import Attestation

/// What must hold for any bytes that arrive as a key set.
public enum KeySetInvariants {
    /// - Returns: nil, or what is wrong.
    public static func violation(of bytes: [UInt8]) -> String? {
        let keySet: KeySet
        do throws(KeySetError) {
            keySet = try KeySet.parse(bytes.span)
        } catch {
            if case .noUsableKey(let skipped) = error { return orderViolation(skipped) }
            return nil
        }
        if keySet.keys.isEmpty || keySet.keys.count > KeySet.maximumKeyCount { return "key count" }
        if Set(keySet.keyIDs).count != keySet.keys.count { return "two keys have one kid" }
        for key in keySet.keys {
            let keyID = Array(key.keyID.utf8)
            if keySet.key(for: keyID.span) !== key { return "a key is not found by its kid" }
            if !(1...128 ~= keyID.count) || !keyID.allSatisfy({ 0x21...0x7E ~= $0 }) {
                return "a strange kid"
            }
            if !(2048...4096 ~= key.modulusBitCount) { return "a modulus of another size" }
            if let violation = signatureViolation(keySet, key) { return violation }
        }
        return orderViolation(keySet.skipped)
    }

    /// A key that was taken must be usable, and must not verify what nobody signed.
    private static func signatureViolation(_ keySet: KeySet, _ key: VerificationKey) -> String? {
        let issuer = "https://firebaseappcheck.googleapis.com/1"
        let verifier = TokenVerifier(projects: [
            Project(name: "fuzz", number: "1", id: nil, issuer: issuer, apps: [], leeway: 0)
        ])
        let header = "{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"\(key.keyID)\"}"
        let signature = [UInt8](repeating: 1, count: key.modulusBitCount / 8)
        let segments = [Array(header.utf8), Array("{\"iss\":\"\(issuer)\"}".utf8), signature]
        let token = segments.map(base64URL).joined(separator: ".")
        let verdict = verifier.verify(Array(token.utf8).span, now: 0) { _ in keySet }
        if case .invalid(.signature) = verdict { return nil }
        return "judged as \(verdict) with \(key.keyID)"
    }

    private static func orderViolation(_ skipped: [SkippedKey]) -> String? {
        zip(skipped, skipped.dropFirst()).allSatisfy { $0.index < $1.index }
            ? nil : "order of skipped"
    }
}
