/// The payload of a token, with each claim that a rule or a verdict needs found in one walk: a
/// look-up by name for each use costs more than reading the JSON.
struct TokenClaims: ~Copyable {
    /// The second segment, in which the claims below are values.
    let document: JSONDocument
    /// Claim `iat` in Unix seconds, or nil when it is no whole number of them.
    let issuedAt: Int64?
    /// Claim `exp`, likewise.
    let expiresAt: Int64?

    /// Each of these is a value of `document`, or nil when there is no such claim.
    let issuer: Int?
    let subject: Int?
    let audience: Int?
    let notBefore: Int?
    let tokenID: Int?
    let provider: Int?

    /// - Parameter document: An object.
    init(_ document: JSONDocument) {
        var issuedAt: Int?
        var expiresAt: Int?
        var issuer: Int?
        var subject: Int?
        var audience: Int?
        var notBefore: Int?
        var tokenID: Int?
        var provider: Int?
        document.forEachShortMember { name, value in
            // No name is there twice, so each is found at most once.
            switch name {
            case ShortName("iss"): issuer = value
            case ShortName("sub"): subject = value
            case ShortName("aud"): audience = value
            case ShortName("exp"): expiresAt = value
            case ShortName("iat"): issuedAt = value
            case ShortName("nbf"): notBefore = value
            case ShortName("jti"): tokenID = value
            case ShortName("provider"): provider = value
            default: break
            }
        }
        self.document = document
        self.issuedAt = issuedAt.flatMap { document.integer($0) }
        self.expiresAt = expiresAt.flatMap { document.integer($0) }
        self.issuer = issuer
        self.subject = subject
        self.audience = audience
        self.notBefore = notBefore
        self.tokenID = tokenID
        self.provider = provider
    }
}
