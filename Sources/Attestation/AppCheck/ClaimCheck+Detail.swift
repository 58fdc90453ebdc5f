extension ClaimCheck {
    /// Expected against got, for people.
    func detail(of claims: borrowing TokenClaims, for project: ProjectRules, now: Int64) -> String {
        switch self {
        case .audience:
            let expected = project.audiences.map { "\"\(String(decoding: $0, as: UTF8.self))\"" }
            return "expected an array with \(expected.joined(separator: " and ")), "
                + "got \(claims.document.display("aud"))"
        case .subject:
            let subject = claims.document.display("sub")
            guard let member = claims.subject, let id = claims.document.string(member),
                let alias = project.alias(ofAppWithID: id)
            else { return "app \(subject), without an alias in the configuration" }
            return "app \(subject), alias \(alias)"
        case .lifetime:
            guard let issuedAt = claims.issuedAt, let expiresAt = claims.expiresAt else {
                return "expected two whole numbers of seconds, got iat "
                    + "\(claims.document.display("iat")) and exp \(claims.document.display("exp"))"
            }
            return "\(expiresAt - issuedAt) s, expected 1 to \(TokenLimits.lifetime) s"
        case .notBefore:
            return "now \(now), leeway \(project.leeway) s, iat \(claims.document.display("iat"))"
                + (claims.notBefore == nil ? "" : ", nbf \(claims.document.display("nbf"))")
        case .tokenID:
            guard let member = claims.tokenID else { return "no `jti`" }
            guard let count = claims.document.string(member)?.count else {
                return "expected a string, got \(claims.document.display("jti"))"
            }
            return "`jti` of \(count) bytes, expected 1 to \(TokenLimits.tokenIDBytes)"
        case .expiry:
            return Self.expiryDetail(of: claims, for: project, now: now)
        }
    }

    private static func expiryDetail(
        of claims: borrowing TokenClaims, for project: ProjectRules, now: Int64
    ) -> String {
        guard let expiresAt = claims.expiresAt else {
            return "expected a whole number of seconds, got exp \(claims.document.display("exp"))"
        }
        // `now` is the caller's; only here it meets a claim without a bound in between.
        let (left, isBeyond) = expiresAt.subtractingReportingOverflow(now)
        let distance =
            if isBeyond { "" } else if left > 0 { ", in \(left) s" } else { ", \(-left) s ago" }
        return "exp \(expiresAt)\(distance), leeway \(project.leeway) s"
    }
}
