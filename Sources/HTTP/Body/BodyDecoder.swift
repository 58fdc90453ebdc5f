/// What a decoder found at the start of the bytes it was given.
public enum BodyStep: Sendable, Equatable {
    /// Skip `skip` bytes of framing; then `count` (> 0) bytes of content follow.
    case content(skip: Int, count: Int)
    /// Skip `skip` bytes of framing; more bytes are needed.
    case needsMore(skip: Int)
    /// Skip `skip` bytes; the body, and its trailers if any, are complete.
    case end(skip: Int)
}

/// Finds the content of a message body in the bytes of a connection (RFC 9112, sections 6 and 7).
///
/// Use: ask `next`, drop `skip` bytes, take up to `count` bytes of content, report them with `consumed`, ask again.
public struct BodyDecoder: Sendable {
    /// Trailer fields of a chunked body, once `next` returned `end`. Forbidden ones were dropped (pitfall W8).
    public private(set) var trailers: [(name: [UInt8], value: [UInt8])] = []

    public init(_ framing: BodyFraming) {}

    /// Looks at the bytes not yet consumed.
    ///
    /// - Throws: `MalformedMessage` when the framing is broken; nothing after it can be trusted.
    public mutating func next(_ bytes: Span<UInt8>) throws(MalformedMessage) -> BodyStep {
        .end(skip: 0)
    }

    /// Tells that `count` bytes of the content that `next` announced were taken.
    public mutating func consumed(_ count: Int) {}
}
