/// Reads response heads (RFC 9112) from an upstream. What could be split or smuggled is refused (pitfall W10).
public struct ResponseParser: Sendable {
    private let limits: HeadLimits

    public init(limits: HeadLimits) {
        self.limits = limits
    }

    /// Parses the head at the start of `bytes`; `requestMethod` decides whether a body may follow.
    ///
    /// - Returns: true when `head` is complete; false when more bytes are needed.
    /// - Throws: `MalformedMessage`; the upstream connection must then be closed and the client gets a 502.
    public mutating func parse(
        _ bytes: Span<UInt8>, requestMethod: Method, into head: inout ResponseHead
    ) throws(MalformedMessage) -> Bool {
        false
    }

    public mutating func reset() {}
}
