internal import Attestation

/// What must hold for any bytes that arrive as a token.
///
/// The private half of the key is gone: nothing verifies but the four tokens that it signed.
public enum JWSInvariants {
    private static let project = Project(
        name: "fuzz", number: "123", id: "pid",
        issuer: "https://firebaseappcheck.googleapis.com/123",
        apps: [("ios", "1:123:ios:abc")], leeway: 60)
    private static let verifier = TokenVerifier(projects: [project])
    private static let now: Int64 = 1_800_000_000

    private static let modulus = """
        rpMMY1JPG6P9Nqts4p6gjvXfmArn1otjc06EyE50ZmX7BSSrtWL_jBRFAG2gQS9W-LTGTBbdqrvcxJ2-\
        zYb5bksolg7lEakpgxT7TflZAG0bmHTmBF-m6Cu66NxoxhQmF2xCWuZTXj6oSOwE2oaPSNZqVh4yxFx-\
        uqiUmDn5X8Ko67RvnLJkuzT5CBhhx6UBjG1-oN5xv7KJ4HUeEHFwIzffE53AsghBRfnCzhFPQkMVsnCg\
        tYmOzF__0dghpnV8iCTfufUqAI14p_cr6Tk-rErJmaBzPbi4jd2EKTPVJbSbl1COOBosAKcov4Ai2gVb\
        ftmrbLJ3x4NpGH0hyPr9SQ
        """
    private static let keySet: KeySet? = {
        let json = """
            {"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":"k1","n":"\(modulus)","e":"AQAB"}]}
            """
        return try? KeySet.parse(Array(json.utf8).span)
    }()

    /// The first eight bytes of the SHA-256 of each token that the key has signed and that is in
    /// order.
    private static let signed: Set<UInt64> = [
        0x2b77_9400_e51e_ed8b,  // valid
        0xf10d_432e_e7bf_135e,  // valid-escaped
        0xed97_be5c_f1fc_97ae,  // valid-limited-use
        0xc896_f58d_c32c_7c4c,  // jwk-in-header
    ]

    /// Judges the bytes as a token, and, when they have a line feed, as the texts of its header and
    /// payload as well: a fuzzer does not learn base64.
    ///
    /// - Returns: nil, or what is wrong.
    public static func violation(of bytes: [UInt8]) -> String? {
        if let violation = violation(ofToken: bytes) { return violation }
        guard let lineFeed = bytes.firstIndex(of: 0x0A) else { return nil }
        let header = base64URL(Array(bytes[..<lineFeed]))
        let payload = base64URL(Array(bytes[(lineFeed + 1)...]))
        let signature = base64URL([UInt8](repeating: 0, count: 256))
        return violation(ofToken: Array("\(header).\(payload).\(signature)".utf8))
    }

    private static func violation(ofToken token: [UInt8]) -> String? {
        guard let keySet else { return "the key set does not parse" }
        let verdict = verifier.verify(token.span, now: now) { _ in keySet }
        let steps = verifier.explain(token.span, now: now) { _ in keySet }
        let holds = steps.allSatisfy { if case .holds = $0.outcome { true } else { false } }
        var isVerified = false
        if case .verified = verdict { isVerified = true }
        if holds != isVerified { return "explained as \(steps), judged as \(verdict)" }
        if isVerified, !signed.contains(fingerprint(token)) {
            return "verifies, and nobody signed it"
        }
        if isVerified, !verifier.isTokenOfServedIssuer(token.span) {
            return "its issuer is not seen"
        }
        let cache = TokenCache(capacityBytes: 1 << 16)
        _ = verifier.verify(token.span, now: now, cache: cache) { _ in keySet }
        if cache.count != (isVerified ? 1 : 0) {
            return "cached without being verified, or not at all"
        }
        return nil
    }

    private static func fingerprint(_ token: [UInt8]) -> UInt64 {
        let digest = SHA256.hash(token.span)
        return (0..<8).reduce(0) { $0 << 8 | UInt64(digest.bytes[$1]) }
    }
}
