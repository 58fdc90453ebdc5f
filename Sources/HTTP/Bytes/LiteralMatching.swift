/// Comparison with words that the source knows. Inlined with a literal, it becomes a few compares
/// with constants, eight bytes each: no table, no hash, no allocation.
extension Span where Element == UInt8 {
    /// Whether the bytes from `start` on begin with `literal`, letter case ignored.
    ///
    /// - Parameter literal: Small letters, digits, "-" only. Bytes below 0x20 in the span may match
    ///   a mark or digit of it, so the span must be a checked name or value.
    @inline(__always)
    public func hasPrefix(_ literal: StaticString, at start: Int = 0) -> Bool {
        matches(literal, at: start, folding: 0x2020_2020_2020_2020)
    }

    /// Whether the span is `literal`, letter case ignored; see `hasPrefix`.
    @inline(__always)
    func equals(_ literal: StaticString) -> Bool {
        count == literal.utf8CodeUnitCount && hasPrefix(literal)
    }

    /// Whether the bytes from `start` on begin with exactly the bytes of `literal`.
    @inline(__always)
    func hasExactPrefix(_ literal: StaticString, at start: Int = 0) -> Bool {
        matches(literal, at: start, folding: 0)
    }

    /// Whether the span is `literal`, byte by byte.
    @inline(__always)
    func equals(exactly literal: StaticString) -> Bool {
        count == literal.utf8CodeUnitCount && hasExactPrefix(literal)
    }

    @inline(__always)
    private func matches(_ literal: StaticString, at start: Int, folding: UInt64) -> Bool {
        let length = literal.utf8CodeUnitCount
        guard start >= 0, length <= count &- start else { return false }
        // Safe: a literal of a string has `length` bytes at `utf8Start`, for ever; every load below
        // ends at or before `length`.
        let other = unsafe UnsafeRawPointer(literal.utf8Start)
        if length >= 8 {
            var offset = 0
            while offset <= length &- 8 {
                let mine = word(at: start &+ offset, as: UInt64.self) | folding
                if unsafe mine != other.loadUnaligned(fromByteOffset: offset, as: UInt64.self) {
                    return false
                }
                offset &+= 8
            }
            let mine = word(at: start &+ length &- 8, as: UInt64.self) | folding
            return unsafe mine
                == other.loadUnaligned(fromByteOffset: length &- 8, as: UInt64.self)
        }
        if length >= 4 {
            let fold = UInt32(truncatingIfNeeded: folding)
            let first = word(at: start, as: UInt32.self) | fold
            let last = word(at: start &+ length &- 4, as: UInt32.self) | fold
            return unsafe first == other.loadUnaligned(as: UInt32.self)
                && last == other.loadUnaligned(fromByteOffset: length &- 4, as: UInt32.self)
        }
        for offset in 0..<length {
            let mine = self[start &+ offset] | UInt8(truncatingIfNeeded: folding)
            if unsafe mine != other.load(fromByteOffset: offset, as: UInt8.self) { return false }
        }
        return true
    }

    @inline(__always)
    private func word<Word: FixedWidthInteger & BitwiseCopyable>(
        at index: Int, as type: Word.Type
    ) -> Word {
        // Safe: every bit pattern is an integer, and the load itself checks its bounds.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: type)
    }
}
