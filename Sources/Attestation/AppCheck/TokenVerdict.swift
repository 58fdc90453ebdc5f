/// Why a token is not valid: the reasons of the verdict `invalid`. The raw value is the word in
/// logs and metrics.
public enum InvalidReason: String, Sendable, CaseIterable {
    case malformed
    case duplicate
    case inURL = "in_url"
    case algorithm
    case unknownKey = "unknown_key"
    case signature
    case issuer
    case audience
    case subject
    case expired
    case notYetValid = "not_yet_valid"
    case lifetime
}

/// What is known about one token after looking at it.
public enum TokenVerdict: Sendable {
    /// Signature and claims hold.
    case verified(VerifiedToken)
    /// The SDK's placeholder: App Check is in the app, but attestation failed there
    /// (docs/app-check-tokens.md 4).
    case attestationFailed
    case invalid(InvalidReason)
    /// A bare debug secret (UUID) was sent in place of a token: `malformed`, and worth an
    /// explaining log line that does not contain it.
    case debugSecret
    /// The key set of the token's project was never loaded, or is too old to be used.
    case keysUnavailable(project: Int)
    /// The token's `kid` is not in the key set of its project; a refetch may help.
    case unknownKey(project: Int)
    /// Nothing is wrong with its form, but its signature was not computed: it was not worth it
    /// (`admits` of ``TokenVerifier/verify(_:now:keys:admits:)``).
    case notAdmitted
}
