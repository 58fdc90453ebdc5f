/// What goes wrong without a token being at fault. The raw value is `code` in the problem document.
public enum ProxyProblem: String, Sendable, CaseIterable {
    // The client's side.
    case badRequest = "bad_request"
    case notFound = "not_found"
    case methodNotAllowed = "method_not_allowed"
    case requestTimeout = "request_timeout"
    case bodyTooLarge = "body_too_large"
    case uriTooLong = "uri_too_long"
    case expectationFailed = "expectation_failed"
    case misdirectedRequest = "misdirected_request"
    case rateLimited = "rate_limited"
    case headerTooLarge = "header_too_large"
    case webSocketNotSupported = "websocket_not_supported"
    case versionNotSupported = "version_not_supported"
    // Ours.
    case overloaded
    // The upstream's side.
    case upstreamUnreachable = "upstream_unreachable"
    case upstreamTimeout = "upstream_timeout"
    case upstreamUnavailable = "upstream_unavailable"
    case upstreamReset = "upstream_reset"
    case upstreamProtocol = "upstream_protocol"

    /// The HTTP status of the answer (RFC 9110, section 15; RFC 6585).
    public var status: UInt16 {
        switch self {
        case .badRequest: 400
        case .notFound: 404
        case .methodNotAllowed: 405
        case .requestTimeout: 408
        case .bodyTooLarge: 413
        case .uriTooLong: 414
        case .expectationFailed: 417
        case .misdirectedRequest: 421
        case .rateLimited: 429
        case .headerTooLarge: 431
        case .webSocketNotSupported: 501
        case .upstreamUnreachable, .upstreamReset, .upstreamProtocol: 502
        case .upstreamTimeout: 504
        case .upstreamUnavailable, .overloaded: 503
        case .versionNotSupported: 505
        }
    }

    /// The gRPC status of a trailers-only answer. As gRPC maps HTTP's, but not UNAVAILABLE, which
    /// clients try again by themselves, where the backend may have acted already.
    public var grpcStatus: UInt8 {
        switch self {
        case .badRequest, .headerTooLarge, .uriTooLong, .expectationFailed, .versionNotSupported,
            .upstreamReset, .upstreamProtocol:
            13
        case .notFound, .methodNotAllowed, .misdirectedRequest, .webSocketNotSupported: 12
        case .bodyTooLarge, .rateLimited: 8
        case .requestTimeout, .upstreamTimeout: 4
        case .upstreamUnreachable, .upstreamUnavailable, .overloaded: 14
        }
    }
}
