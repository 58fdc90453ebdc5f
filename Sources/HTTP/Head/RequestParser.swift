/// Reads request heads (RFC 9112) strictly: what nginx, HAProxy or a backend could read in two ways is refused.
///
/// The parser remembers how far it has looked, so a client that sends a head byte by byte costs linear time.
public struct RequestParser: Sendable {
    private let limits: HeadLimits

    public init(limits: HeadLimits) {
        self.limits = limits
    }

    /// Parses the head at the start of `bytes`.
    ///
    /// - Returns: true when `head` is complete; false when more bytes are needed. Call again with the same bytes and
    ///   more behind them.
    /// - Throws: `MalformedMessage`; the connection must then answer its status and close.
    public mutating func parse(
        _ bytes: Span<UInt8>, into head: inout RequestHead
    ) throws(MalformedMessage) -> Bool {
        false
    }

    /// Forgets a half-read head.
    public mutating func reset() {}
}
