/// The one reading of a request target (RFC 9112, section 3.2): what routes are chosen by is byte for byte what is
/// forwarded.
///
/// `path` and `query` are the *forwarded* bytes. When the client sent them in normal form (nearly always) they are
/// ranges of the head; otherwise the normalised bytes lie in `rewritten` and `isRewritten` is true.
public struct RequestTarget: Sendable {
    public enum Form: Sendable { case origin, absolute, asterisk }

    public var form: Form = .origin
    /// The target exactly as the client wrote it, for the log.
    public var raw: ByteRange = .empty
    /// Normalised path, starting with "/"; the range is in the head, or in `rewritten` when `isRewritten`.
    public var path: ByteRange = .empty
    /// Query without "?"; always a range of the head. `hasQuery` tells "?" with nothing behind it from none at all.
    public var query: ByteRange = .empty
    public var hasQuery = false
    public var isRewritten = false
    /// The normalised path when it differs from what the client wrote.
    public var rewritten: [UInt8] = []
    /// Canonical host without port (lower case, no trailing dot); empty for HTTP/1.0 without Host.
    public var host: [UInt8] = []
    /// Port of the authority, or nil.
    public var port: UInt16?

    public init() {}
}
