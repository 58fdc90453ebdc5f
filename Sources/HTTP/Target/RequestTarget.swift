/// The one reading of a request target (RFC 9112, section 3.2): what routes are chosen by is byte
/// for byte what is forwarded (pitfall P1).
///
/// `path` and `query` are the *forwarded* bytes. When the client sent them in normal form (nearly
/// always) they are ranges of the head; otherwise the normalised path lies in `rewritten` and
/// `isRewritten` is true. docs/decisions/0010-one-path.md says what normal form is.
public struct RequestTarget: Sendable {
    /// How the target was written; what is forwarded is in origin-form, or "*".
    public enum Form: Sendable { case origin, absolute, asterisk }

    /// How the client wrote it.
    public var form: Form = .origin
    /// The target exactly as the client wrote it, for the log.
    public var raw: ByteRange = .empty
    /// Normalised path, starting with "/"; "*" alone in asterisk-form. The range is in the head, or
    /// in `rewritten` when `isRewritten`.
    public var path: ByteRange = .empty
    /// Query without "?"; always a range of the head. `hasQuery` tells "?" with nothing behind it
    /// from none at all.
    public var query: ByteRange = .empty
    /// There is a "?".
    public var hasQuery = false
    /// The path lies in `rewritten`.
    public var isRewritten = false
    /// The normalised path when it differs from what the client wrote.
    public var rewritten: [UInt8] = []
    /// Canonical host without port: lower case, no trailing dot, IPv6 literals in brackets and in
    /// the form of RFC 5952. Empty for HTTP/1.0 without Host.
    public var host: [UInt8] = []
    /// Port as the client wrote it, 1 to 65,535, or nil.
    public var port: UInt16?

    public init() {}

    /// The normalised path.
    ///
    /// - Parameter head: The bytes that the parser was given.
    @_lifetime(borrow self, copy head)
    @inline(__always)
    public func pathBytes(in head: Span<UInt8>) -> Span<UInt8> {
        isRewritten ? rewritten.span.slice(path) : head.slice(path)
    }

    /// The normalised path as text, for servers that are not the data path.
    ///
    /// - Parameter head: The bytes that the parser was given.
    public func pathText(in head: Span<UInt8>) -> String {
        pathBytes(in: head).withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}
