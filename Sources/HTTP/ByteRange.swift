/// A run of bytes inside the bytes of a message head: where it starts and how long it is.
///
/// The data path passes ranges instead of copies. A range means nothing without the bytes it was
/// made for.
public struct ByteRange: Sendable, Equatable {
    /// Index of the first byte.
    public var start: Int32
    /// Number of bytes.
    public var count: Int32

    @inline(__always)
    public init(start: Int, count: Int) {
        self.start = Int32(truncatingIfNeeded: start)
        self.count = Int32(truncatingIfNeeded: count)
    }

    /// No bytes.
    public static let empty = ByteRange(start: 0, count: 0)

    /// Whether it has no bytes.
    public var isEmpty: Bool { count == 0 }

    /// Index behind the last byte.
    public var end: Int { Int(start) + Int(count) }
}

extension Span where Element == UInt8 {
    /// The bytes of `range`; traps when the range was made for other, longer bytes.
    @_lifetime(copy self)
    @inline(__always)
    public func slice(_ range: ByteRange) -> Span<UInt8> {
        extracting(Int(range.start)..<range.end)
    }
}
