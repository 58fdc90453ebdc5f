/// The version on a request or status line.
public enum Version: UInt8, Sendable {
    case http10, http11
}

/// How the body of a message is delimited (RFC 9112, section 6).
public enum BodyFraming: Sendable, Equatable {
    case none
    /// Content-Length, in bytes; 0 is `none`.
    case length(UInt64)
    case chunked
    /// A response that ends with the connection.
    case untilClose
}

/// A parsed and validated request head. Every range refers to the bytes that were given to the
/// parser.
public struct RequestHead: Sendable {
    /// The method, for comparisons; `other` for an unknown one.
    public var method: Method = .other
    /// The method as it came: a token (RFC 9110, section 9.1).
    public var methodName: ByteRange = .empty
    /// From the start line.
    public var version: Version = .http11
    /// What is asked for; its path is in normal form.
    public var target = RequestTarget()
    /// Every field line, in order.
    public var fields = FieldSection()
    /// How the body is delimited; a request never ends with its connection.
    public var framing: BodyFraming = .none
    /// The connection may carry another request after this one.
    public var isPersistent = true
    /// `Expect: 100-continue` on HTTP/1.1, with a body to wait for.
    public var expectsContinue = false
    /// `Connection: upgrade` with `Upgrade: websocket` alone, and one key, on a GET without body.
    public var wantsWebSocket = false
    /// `TE: trailers`.
    public var acceptsTrailers = false
    /// Bytes of the head with its blank line, and of empty lines that were skipped before it.
    public var length = 0
    /// What the head before this one was for: one connection's requests mostly go to one host.
    var lastHost = LastHost()

    public init() {}
}

/// A parsed and validated response head from an upstream.
public struct ResponseHead: Sendable {
    /// 100 to 599.
    public var status: UInt16 = 0
    /// From the start line.
    public var version: Version = .http11
    /// May be empty.
    public var reason: ByteRange = .empty
    /// Every field line, in order.
    public var fields = FieldSection()
    /// How the body is delimited, given the request's method (RFC 9112, section 6.3).
    public var framing: BodyFraming = .none
    /// The connection may carry another response after this one's body.
    public var isPersistent = true
    /// Bytes of the head with its blank line.
    public var length = 0

    /// An interim answer (RFC 9110, section 15.2).
    public var isInformational: Bool { status < 200 }

    /// 2xx (RFC 9110, section 15.3).
    public var isSuccess: Bool { 200...299 ~= status }

    public init() {}
}
