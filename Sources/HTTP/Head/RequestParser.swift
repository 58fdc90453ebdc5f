/// Reads request heads (RFC 9112) strictly: what nginx, HAProxy or a backend could read in two ways
/// is refused.
///
/// The parser remembers how far it has looked, so a client that sends a head byte by byte costs
/// linear time. In steady state it allocates nothing: `head` keeps its memory.
public struct RequestParser: Sendable {
    private let limits: HeadLimits
    private var scanner = HeadScanner()

    /// Room for a method, two spaces, the version and CRLF beside the target.
    private static let startLineOverhead = 64

    /// A parser for the first request of a connection.
    public init(limits: HeadLimits) {
        self.limits = limits
    }

    /// Parses the head at the start of `bytes`.
    ///
    /// - Returns: true when `head` is complete; false when more bytes are needed. Call again with
    ///   the same bytes and more behind them.
    /// - Throws: `MalformedMessage`; the connection must then answer its status and close.
    public mutating func parse(
        _ bytes: Span<UInt8>, into head: inout RequestHead
    ) throws(MalformedMessage) -> Bool {
        let end = try scanner.scan(
            bytes, limit: limits.bytes, startLineLimit: limits.target + Self.startLineOverhead,
            skipsEmptyLines: true)
        guard let end else { return false }
        let start = scanner.start
        reset()
        head.clear()
        let (authority, fieldsStart) = try parseRequestLine(bytes, from: start, into: &head)
        head.length = try head.fields.parse(
            bytes, from: fieldsStart, limit: limits.fields, of: .request)
        guard head.length == end else { throw MalformedMessage(.fieldName) }
        try head.interpretHost(bytes, authority)
        try head.interpretFraming(bytes)
        try head.interpretConnection(bytes)
        return true
    }

    /// Forgets a half-read head.
    public mutating func reset() {
        scanner = HeadScanner()
    }

    /// - Returns: The authority of an absolute-form target, and the index of the first field line.
    @inline(__always)
    private func parseRequestLine(
        _ bytes: Span<UInt8>, from start: Int, into head: inout RequestHead
    ) throws(MalformedMessage) -> (AbsoluteAuthority?, Int) {
        var methodEnd = start
        while methodEnd < bytes.count, ByteSet.token.contains(bytes[methodEnd]) { methodEnd &+= 1 }
        guard methodEnd > start, methodEnd < bytes.count, bytes[methodEnd] == 0x20 else {
            throw MalformedMessage(.method)
        }
        head.methodName = ByteRange(start: start, count: methodEnd &- start)
        head.method = try Method(bytes.slice(head.methodName))
        if head.method == .connect || head.method == .trace {
            throw MalformedMessage(.connectMethod)
        }
        let authority = try head.target.parse(
            bytes, from: methodEnd &+ 1, method: head.method, limit: limits.target)
        let versionStart = head.target.raw.end &+ 1
        head.version = try Version(bytes, at: versionStart)
        guard bytes.isLineEnd(at: versionStart &+ Version.length) else {
            throw MalformedMessage(.startLine)
        }
        return (authority, versionStart &+ Version.length &+ 2)
    }
}
