/// What the claims must say, once the signature holds (docs/app-check-tokens.md 3). Times are Unix
/// seconds.
///
/// `expiry` comes last: a token that is refused for it was right in everything else, so the client
/// may be told that a new one will do.
enum ClaimCheck: String {
    case audience
    case subject
    case lifetime
    case notBefore = "not_before"
    case tokenID = "token_id"
    case expiry

    /// Which of several faults is told.
    static let inOrder: [ClaimCheck] = [
        .audience, .subject, .lifetime, .notBefore, .tokenID, .expiry,
    ]

    /// Why the claims do not meet the rule, or nil when they do.
    func fault(in claims: borrowing TokenClaims, of project: ProjectRules, now: Int64)
        -> InvalidReason?
    {
        switch self {
        case .audience: Self.isAudience(claims, of: project) ? nil : .audience
        case .subject: Self.hasSubject(claims) ? nil : .subject
        case .lifetime: Self.lifetimeFault(claims, of: project)
        case .notBefore: Self.notBeforeFault(claims, of: project, now: now)
        case .tokenID: Self.hasSoundTokenID(claims) ? nil : .malformed
        case .expiry: Self.expiryFault(claims, of: project, now: now)
        }
    }

    /// `aud` is an array of strings in which every configured name of the project is (pitfalls T5,
    /// T6).
    private static func isAudience(_ claims: borrowing TokenClaims, of project: ProjectRules)
        -> Bool
    {
        guard let list = claims.audience else { return false }
        let areAllStrings = claims.document.allElements(of: list) { $0 != nil }
        guard areAllStrings else { return false }
        for audience in project.audiences {
            let isMissing = claims.document.allElements(of: list) { element in
                !(element?.equals(audience.span) ?? false)
            }
            if isMissing { return false }
        }
        return true
    }

    private static func hasSubject(_ claims: borrowing TokenClaims) -> Bool {
        guard let member = claims.subject, let subject = claims.document.string(member),
            1...TokenLimits.subjectBytes ~= subject.count
        else { return false }
        // It becomes a header field and a log line, so it must be harmless in both.
        for index in subject.indices where !(0x21...0x7E ~= subject[index]) { return false }
        return true
    }

    private static func lifetimeFault(
        _ claims: borrowing TokenClaims, of project: ProjectRules
    ) -> InvalidReason? {
        guard let issuedAt = claims.issuedAt, let expiresAt = claims.expiresAt else {
            return .malformed
        }
        // Both are at most 2^53, so no sum or difference here leaves Int64.
        guard expiresAt > issuedAt,
            expiresAt - issuedAt <= TokenLimits.lifetime + project.leeway
        else { return .lifetime }
        return nil
    }

    private static func notBeforeFault(
        _ claims: borrowing TokenClaims, of project: ProjectRules, now: Int64
    ) -> InvalidReason? {
        guard let issuedAt = claims.issuedAt else { return .malformed }
        if issuedAt - project.leeway > now { return .notYetValid }
        guard let member = claims.notBefore else { return nil }
        guard let notBefore = claims.document.integer(member) else { return .malformed }
        return notBefore - project.leeway > now ? .notYetValid : nil
    }

    private static func expiryFault(
        _ claims: borrowing TokenClaims, of project: ProjectRules, now: Int64
    ) -> InvalidReason? {
        guard let expiresAt = claims.expiresAt else { return .malformed }
        return now >= expiresAt + project.leeway ? .expired : nil
    }

    private static func hasSoundTokenID(_ claims: borrowing TokenClaims) -> Bool {
        guard let member = claims.tokenID else { return true }
        guard let tokenID = claims.document.string(member) else { return false }
        return 1...TokenLimits.tokenIDBytes ~= tokenID.count
    }
}
