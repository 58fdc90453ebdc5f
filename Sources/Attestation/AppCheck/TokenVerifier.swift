/// Judges App Check tokens: bytes and the time in, verdict out (docs/app-check-tokens.md 3).
/// Immutable; made once for each configuration.
///
/// The order is part of the rule. What is cheap comes first; the issuer chooses the project before
/// a key is looked at; no claim but the issuer counts, or is told about, before the signature
/// holds.
public struct TokenVerifier: Sendable {
    /// By index of the project.
    let rules: [ProjectRules]

    /// - Parameter projects: Whose tokens are served. Each issuer belongs to one project; if two
    ///   have the same, the first one gets its tokens.
    public init(projects: [Project]) {
        rules = projects.map(ProjectRules.init)
    }

    /// Judges one token.
    ///
    /// - Parameters:
    ///   - token: The field value without white space around it.
    ///   - now: Unix seconds.
    ///   - keys: The current key set of a project, or nil when none was ever loaded or the last is
    ///     too old.
    ///   - admits: Asked once, where nothing is left but what is expensive: whether the signature is
    ///     to be computed.
    public func verify(
        _ token: Span<UInt8>, now: Int64, keys: (Int) -> KeySet?,
        admits: () -> Bool = { true }
    ) -> TokenVerdict {
        switch NotAToken.recognize(token) {
        case .placeholder: return .attestationFailed
        case .debugSecret: return .debugSecret
        case nil: break
        }
        guard let decoded = try? DecodedToken(token) else { return .invalid(.malformed) }
        for check in HeaderCheck.inOrder {
            if let reason = check.fault(in: decoded.header) { return .invalid(reason) }
        }
        guard let project = project(issuing: decoded.claims) else { return .invalid(.issuer) }
        guard let keySet = keys(project) else { return .keysUnavailable(project: project) }
        guard let key = Self.key(for: decoded, in: keySet) else {
            return .unknownKey(project: project)
        }
        guard admits() else { return .notAdmitted }
        guard Self.isSigned(decoded, token, by: key) else { return .invalid(.signature) }
        return verdict(on: decoded.claims, project: project, key: key, now: now)
    }

    /// What is left to judge once the signature holds.
    ///
    /// - Parameter key: nil where the signature is only assumed to hold.
    func verdict(
        on claims: borrowing TokenClaims, project: Int, key: VerificationKey?, now: Int64
    ) -> TokenVerdict {
        for check in ClaimCheck.inOrder {
            if let reason = check.fault(in: claims, of: rules[project], now: now) {
                return .invalid(reason)
            }
        }
        guard let verified = verifiedToken(claims, project: project, key: key) else {
            return .invalid(.malformed)
        }
        return .verified(verified)
    }

    /// Whether `value` is a JWT that claims an issuer which is served: a token where none belongs,
    /// such as in a URL. Nothing about it is verified.
    public func isTokenOfServedIssuer(_ value: Span<UInt8>) -> Bool {
        guard let claims = try? DecodedToken.claims(of: value) else { return false }
        return project(issuing: claims) != nil
    }

    /// The project whose issuer is exactly claim `iss` (pitfall T7).
    func project(issuing claims: borrowing TokenClaims) -> Int? {
        guard let member = claims.issuer, let issuer = claims.document.string(member) else {
            return nil
        }
        return rules.firstIndex { rules in
            let served = rules.issuer
            return issuer.equals(served.span)
        }
    }

    /// The key that the token's `kid` names; nil when it is not in the set.
    static func key(for token: borrowing DecodedToken, in keySet: KeySet) -> VerificationKey? {
        guard let member = token.header.keyID,
            let keyID = token.header.document.string(member)
        else { return nil }
        return keySet.key(for: keyID)
    }

    /// Whether the signature over header and claims is the key's.
    static func isSigned(
        _ decoded: borrowing DecodedToken, _ token: Span<UInt8>, by key: VerificationKey
    ) -> Bool {
        let digest = SHA256.hash(token.extracting(..<decoded.signedByteCount))
        return key.publicKey.isSignature(decoded.signature.span, of: digest)
    }

    private func verifiedToken(
        _ claims: borrowing TokenClaims, project: Int, key: VerificationKey?
    ) -> VerifiedToken? {
        // The checks have seen all three; nil here would be a check that was taken away.
        guard let subject = claims.subject, let appID = claims.document.string(subject),
            let issuedAt = claims.issuedAt, let expiresAt = claims.expiresAt
        else { return nil }
        let app = rules[project].app(withID: appID)
        return VerifiedToken(
            project: project, appID: app.map { rules[project].id(ofApp: $0) } ?? appID.text(),
            app: app,
            issuedAt: issuedAt, expiresAt: expiresAt,
            acceptedUntil: expiresAt + rules[project].leeway,
            tokenID: claims.tokenID.flatMap { claims.document.text(of: $0) },
            provider: claims.provider.flatMap { claims.document.text(of: $0) },
            keyID: key?.keyID ?? "", key: key)
    }
}
