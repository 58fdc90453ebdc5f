/// The fields that the proxy treats in some special way; everything else is `other` and passes
/// through.
///
/// `reserved` is any spelling (case, `_` for `-`) of a field that only the proxy itself may set
/// upstream (`X-AppCheck-Verdict`, `-Reason`, `-App`, `-App-Id`, `-Action`, and any other
/// `X-AppCheck-…` or `X-Client-Cert-…`), and any spelling with `_` of the token's own field, of a
/// forwarding field or of another field named here: they are always removed from requests (pitfalls
/// H2, H3).
public enum KnownField: UInt8, Sendable {
    case other
    case host, connection, contentLength, transferEncoding, te, trailer, upgrade, expect
    case keepAlive, proxyConnection, proxyAuthenticate, proxyAuthorization
    case appCheckToken
    case reserved
    /// X-Forwarded-For, -Proto, -Host: replaced by the proxy's own.
    case forwardedFor, forwardedProto, forwardedHost
    /// Forwarded (RFC 7239): replaced by the proxy's own where a backend wants it, else removed.
    case forwarded
    /// X-Real-IP, X-Forwarded-*, X-Original-URL, X-Rewrite-URL, Client-Cert (RFC 9440) …:
    /// dropped from untrusted peers (H6).
    case forwardedOther
    case via, requestID, traceparent, tracestate
    case userAgent, origin, accessControlRequestMethod, accessControlRequestHeaders
    case contentType, date, server, cookie, authorization
    case http2Settings
    case webSocketKey, webSocketAccept, webSocketProtocol
    /// Sec-WebSocket-Version and -Extensions.
    case webSocketOther
}

extension KnownField {
    /// Whether the field says something about one connection only and is never forwarded, named by
    /// `Connection` or not (RFC 9110, section 7.6.1).
    ///
    /// `Proxy-Authorization` and `Proxy-Authenticate` are among them: credentials for a proxy stop
    /// at the first one. `Trailer` is not: trailer fields pass, so their announcement does too.
    @inline(__always)
    var isHopByHop: Bool {
        switch self {
        case .connection, .keepAlive, .proxyConnection, .te, .transferEncoding, .upgrade,
            .http2Settings, .proxyAuthenticate, .proxyAuthorization:
            true
        default: false
        }
    }

    /// Whether `Connection` may have the field removed: only what the proxy itself knows nothing
    /// about, and what it removes anyway (pitfall H4).
    @inline(__always)
    var mayBeNominated: Bool { self == .other || isHopByHop }
}
