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
/// Use: ask `next`, drop `skip` bytes, take up to `count` bytes of content, report them with
/// `consumed`, ask again. Framing is consumed as it comes, so memory does not grow with the body;
/// only trailer fields are kept, and they are bounded.
public struct BodyDecoder: Sendable {
    private enum Mode: Sendable {
        case complete
        case length(remaining: UInt64)
        case chunked
        case untilClose
    }

    private var mode: Mode
    private var chunks = ChunkedDecoder()

    /// Trailer fields of a chunked body, once `next` returned `end`. Forbidden ones were dropped
    /// (pitfall W8).
    public var trailers: [(name: [UInt8], value: [UInt8])] { chunks.trailers.fields }

    /// A decoder for one body.
    public init(_ framing: BodyFraming) {
        mode =
            switch framing {
            case .none, .length(0): .complete
            case .length(let length): .length(remaining: length)
            case .chunked: .chunked
            case .untilClose: .untilClose
            }
    }

    /// Looks at the bytes not yet consumed. A body that ends with its connection never returns
    /// `end`: whoever sees the connection end knows.
    ///
    /// - Throws: `MalformedMessage` when the framing is broken; nothing after it can be trusted.
    public mutating func next(_ bytes: Span<UInt8>) throws(MalformedMessage) -> BodyStep {
        switch mode {
        case .complete: return .end(skip: 0)
        case .chunked: return try chunks.next(bytes)
        case .untilClose:
            return bytes.isEmpty ? .needsMore(skip: 0) : .content(skip: 0, count: bytes.count)
        case .length(let remaining):
            if bytes.isEmpty { return .needsMore(skip: 0) }
            let count = Int(min(remaining, UInt64(bytes.count)))
            return .content(skip: 0, count: count)
        }
    }

    /// Tells that `count` bytes of the content that `next` announced were taken.
    public mutating func consumed(_ count: Int) {
        switch mode {
        case .complete: precondition(count == 0, "content of a body that has ended")
        case .untilClose: return
        case .chunked: chunks.consumed(count)
        case .length(let remaining):
            precondition(count >= 0 && UInt64(count) <= remaining, "more than was announced")
            let rest = remaining - UInt64(count)
            mode = rest == 0 ? .complete : .length(remaining: rest)
        }
    }
}
