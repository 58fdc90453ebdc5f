/// The claims of a token whose signature and claims were verified.
public final class VerifiedToken: Sendable {
    /// Index of the project in the configuration.
    public let project: Int
    /// Claim `sub`: the Firebase app id.
    public let appID: String
    /// Index of the app among the project's configured aliases, or nil for an app that has none.
    public let app: Int?
    /// Claim `iat`, seconds since 1970.
    public let issuedAt: Int64
    /// Claim `exp`, seconds since 1970.
    public let expiresAt: Int64
    /// The first second, since 1970, at which the token is no longer accepted: `exp` and the
    /// project's leeway (pitfall T15).
    public let acceptedUntil: Int64
    /// Claim `jti`, when it is there.
    public let tokenID: String?
    /// Claim `provider`, undocumented: for metrics only.
    public let provider: String?
    /// The key that signed it; a token stops being valid when its key leaves the key set (pitfall
    /// K7).
    public let keyID: String
    /// That key itself, for the cache; nil in a value that no verifier made.
    let key: VerificationKey?

    public convenience init(
        project: Int, appID: String, app: Int?, issuedAt: Int64, expiresAt: Int64,
        tokenID: String?, provider: String?, keyID: String, acceptedUntil: Int64? = nil
    ) {
        self.init(
            project: project, appID: appID, app: app, issuedAt: issuedAt, expiresAt: expiresAt,
            acceptedUntil: acceptedUntil ?? expiresAt, tokenID: tokenID, provider: provider,
            keyID: keyID, key: nil)
    }

    init(
        project: Int, appID: String, app: Int?, issuedAt: Int64, expiresAt: Int64,
        acceptedUntil: Int64, tokenID: String?, provider: String?, keyID: String,
        key: VerificationKey?
    ) {
        self.project = project
        self.appID = appID
        self.app = app
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.acceptedUntil = acceptedUntil
        self.tokenID = tokenID
        self.provider = provider
        self.keyID = keyID
        self.key = key
    }

    /// Until which second, since 1970, whoever remembers that the token was used has to do so: `exp`
    /// and the largest leeway there is. With the project's own, a reload that raises it, or another
    /// process with a larger one, would accept once more what was forgotten in between.
    public var rememberedUntil: Int64 {
        let (second, overflow) = expiresAt.addingReportingOverflow(TokenLimits.leeway)
        return overflow ? .max : second
    }

    /// How long the token lives from its issue on, in seconds: five minutes where it is meant for
    /// one use. The verifier bounds it; in a value of other making it is the longest there is where
    /// it cannot be told.
    public var lifetime: Int64 {
        let (seconds, overflow) = expiresAt.subtractingReportingOverflow(issuedAt)
        return overflow ? .max : seconds
    }

    /// Whether the token is meant for one use: nothing but its lifetime tells.
    ///
    /// - Parameter longest: Seconds that such a token lives at most.
    public func isLimitedUse(upTo longest: Int64) -> Bool { lifetime <= longest }
}
