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
    public var method: Method = .other
    public var methodName: ByteRange = .empty
    public var version: Version = .http11
    public var target = RequestTarget()
    public var fields = FieldSection()
    public var framing: BodyFraming = .none
    /// The connection may carry another request after this one.
    public var isPersistent = true
    /// `Expect: 100-continue` on HTTP/1.1, with a body to wait for.
    public var expectsContinue = false
    /// `Connection: upgrade` with `Upgrade: websocket` alone, on a GET without body.
    public var wantsWebSocket = false
    /// `TE: trailers`.
    public var acceptsTrailers = false
    /// Bytes of the head with its blank line, and of empty lines that were skipped before it.
    public var length = 0

    public init() {}
}

/// A parsed and validated response head from an upstream.
public struct ResponseHead: Sendable {
    /// 100 to 599.
    public var status: UInt16 = 0
    public var version: Version = .http11
    public var reason: ByteRange = .empty
    public var fields = FieldSection()
    public var framing: BodyFraming = .none
    /// The connection may carry another response after this one's body.
    public var isPersistent = true
    /// Bytes of the head with its blank line.
    public var length = 0

    /// An interim answer (RFC 9110, section 15.2).
    public var isInformational: Bool { status < 200 }

    public init() {}
}
