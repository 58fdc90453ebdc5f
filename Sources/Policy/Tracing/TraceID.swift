/// The name of a trace: 128 bits that are not all zero (W3C Trace Context, section 3.2.2.3).
public struct TraceID: Sendable, Hashable {
    public var high: UInt64
    public var low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }
}

/// What `traceparent` says: which trace a request belongs to, and which span of it is its parent
/// (W3C Trace Context, level 1, section 3.2).
public struct TraceParent: Sendable, Equatable {
    public var traceID: TraceID
    /// The caller's span; never 0.
    public var spanID: UInt64
    /// The caller may have recorded the trace.
    public var isSampled: Bool

    /// Bytes of version 00.
    private static let length = 55

    public init(traceID: TraceID, spanID: UInt64, isSampled: Bool) {
        self.traceID = traceID
        self.spanID = spanID
        self.isSampled = isSampled
    }

    /// Reads a field value, or nil when it is none. Of a version after 00 the part is read that 00
    /// has too, as section 3.2.4 wants it.
    public init?(text: Span<UInt8>) {
        guard text.count >= Self.length,
            let version = Self.hexadecimal(text, 0, 2), version != 0xFF,
            text[2] == UInt8(ascii: "-"), let high = Self.hexadecimal(text, 3, 16),
            let low = Self.hexadecimal(text, 19, 16), text[35] == UInt8(ascii: "-"),
            let span = Self.hexadecimal(text, 36, 16), text[52] == UInt8(ascii: "-"),
            let flags = Self.hexadecimal(text, 53, 2), high | low != 0, span != 0
        else { return nil }
        if text.count > Self.length {
            guard version != 0, text[Self.length] == UInt8(ascii: "-") else { return nil }
        }
        self.init(
            traceID: TraceID(high: high, low: low), spanID: span, isSampled: flags & 1 != 0)
    }

    /// The value of so many digits, in lower case only.
    private static func hexadecimal(_ text: Span<UInt8>, _ start: Int, _ count: Int) -> UInt64? {
        var value: UInt64 = 0
        for index in start..<(start + count) {
            let digit: UInt8
            switch text[index] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = text[index] - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = text[index] - UInt8(ascii: "a") + 10
            default: return nil
            }
            value = value << 4 | UInt64(digit)
        }
        return value
    }
}
