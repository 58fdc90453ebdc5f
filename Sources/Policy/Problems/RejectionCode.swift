/// The stable codes of rejections (README, "Rejections"). The raw value is `code` in the problem
/// document.
public enum RejectionCode: String, Sendable, CaseIterable {
    case tokenMissing = "token_missing"
    case tokenInvalid = "token_invalid"
    case tokenExpired = "token_expired"
    case attestationFailed = "attestation_failed"
    case limitedUseRequired = "limited_use_required"
    case tokenAlreadyUsed = "token_already_used"
    case appNotAllowed = "app_not_allowed"
    case tokenInURL = "token_in_url"
    case verificationUnavailable = "verification_unavailable"
    case verificationLimited = "verification_limited"

    /// The HTTP status of the answer.
    public var status: UInt16 {
        switch self {
        case .appNotAllowed: 403
        case .tokenInURL: 400
        case .verificationUnavailable: 503
        case .verificationLimited: 429
        default: 401
        }
    }

    /// The gRPC status of a trailers-only answer.
    public var grpcStatus: UInt8 {
        switch self {
        case .appNotAllowed: 7
        case .tokenInURL: 3
        case .verificationUnavailable: 14
        case .verificationLimited: 8
        default: 16
        }
    }
}
