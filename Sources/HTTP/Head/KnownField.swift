/// The fields that the proxy treats in some special way; everything else is `other` and passes through.
///
/// `reserved` is any spelling (case, `_` for `-`) of a field that only the proxy itself may set upstream
/// (`X-AppCheck-Verdict`, `-Reason`, `-App`, `-App-Id`, `-Action`), and any spelling with `_` of the token's own
/// field or of a forwarding field: they are always removed (pitfalls H2, H3).
public enum KnownField: UInt8, Sendable {
    case other
    case host, connection, contentLength, transferEncoding, te, trailer, upgrade, expect
    case keepAlive, proxyConnection, proxyAuthenticate, proxyAuthorization
    case appCheckToken
    case reserved
    /// X-Forwarded-For, -Proto, -Host: replaced by the proxy's own.
    case forwardedFor, forwardedProto, forwardedHost
    /// Forwarded, X-Real-IP, X-Forwarded-*, X-Original-URL, X-Rewrite-URL …: dropped from untrusted peers (H6).
    case forwardedOther
    case via, requestID, traceparent, tracestate
    case userAgent, origin, accessControlRequestMethod, accessControlRequestHeaders
    case contentType, date, server, cookie, authorization
    case http2Settings
}
