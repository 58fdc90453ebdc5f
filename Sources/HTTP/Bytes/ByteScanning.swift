#if canImport(Glibc)
    internal import Glibc
#endif

/// Scans that run over every byte of a message: sixteen at a time, the rest one by one.
///
/// Each returns the index of the first byte that does not belong to the run, or `count`.
extension Span where Element == UInt8 {
    /// The end of a run of letters, digits and "-", which most field names consist of.
    @inline(__always)
    func endOfPlainName(from start: Int) -> Int {
        var index = start
        while index <= count &- 16 {
            let block = block(at: index)
            let offset = (block.isAlphanumeric .| (block .== .all(0x2D))).firstFalse
            index &+= offset
            if offset < 16 { return index }
        }
        while index < count, self[index].isAlphanumeric || self[index] == 0x2D { index &+= 1 }
        return index
    }

    /// The end of a run of token characters (RFC 9110, section 5.6.2).
    func endOfToken(from start: Int) -> Int {
        var index = start
        while index < count, ByteSet.token.contains(self[index]) { index &+= 1 }
        return index
    }

    /// The end of a run of field value characters: HTAB, SP, VCHAR, obs-text (RFC 9110, section
    /// 5.5).
    @inline(__always)
    func endOfText(from start: Int) -> Int {
        var index = start
        // A token is a thousand bytes of which none is special.
        while index <= count &- 64, !hasControl(in64From: index) { index &+= 64 }
        while index <= count &- 16 {
            let offset = block(at: index).isControl.firstTrue
            index &+= offset
            if offset == 16 { continue }
            if self[index] != 0x09 { return index }
            index &+= 1
        }
        while index < count {
            let byte = self[index]
            if (byte < 0x20 && byte != 0x09) || byte == 0x7F { return index }
            index &+= 1
        }
        return index
    }

    /// Whether one of 64 bytes is below SP, or DEL.
    @inline(__always)
    private func hasControl(in64From index: Int) -> Bool {
        let first = block(at: index).isControl .| block(at: index &+ 16).isControl
        let second = block(at: index &+ 32).isControl .| block(at: index &+ 48).isControl
        return (first .| second).hasTrue
    }

    /// Whether every byte is a field value character; of a short value without a scan that takes its
    /// bytes one by one.
    @inline(__always)
    var isText: Bool {
        if count >= 8 && count <= 16 && !hasControl(at: 0) && !hasControl(at: count &- 8) {
            return true
        }
        return endOfText(from: 0) == count
    }

    /// Whether one of eight bytes is below SP, or DEL.
    @inline(__always)
    private func hasControl(at index: Int) -> Bool {
        // Safe: every bit pattern is an integer, and the load itself checks its bounds.
        let word = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
        let other = word ^ 0x7F7F_7F7F_7F7F_7F7F
        // The lowest byte that is too small borrows from its highest bit; one above it may, too.
        let small = (word &- 0x2020_2020_2020_2020) & ~word
        let deleted = (other &- 0x0101_0101_0101_0101) & ~other
        return (small | deleted) & 0x8080_8080_8080_8080 != 0
    }

    /// The end of a run of visible ASCII without "#": what a request target may consist of.
    @inline(__always)
    func endOfVisible(from start: Int) -> Int {
        var index = start
        while index <= count &- 16 {
            let block = block(at: index)
            let stop = ((block &- .all(0x21)) .> .all(0x5D)) .| (block .== .all(0x23))
            let offset = stop.firstTrue
            index &+= offset
            if offset < 16 { return index }
        }
        while index < count, self[index] > 0x20, self[index] < 0x7F, self[index] != 0x23 {
            index &+= 1
        }
        return index
    }

    /// The end of a path that is surely in normal form: letters, digits, "-", "_", "." and "/",
    /// where no "/" is followed by "/" or ".".
    ///
    /// - Parameter start: Index of a byte behind the path's first "/".
    @inline(__always)
    func endOfPlainPath(from start: Int) -> Int {
        var index = start
        while index > 0, index <= count &- 16 {
            let block = block(at: index)
            let isMark = (block &- .all(0x2D)) .< .all(3)
            let isPlain = block.isAlphanumeric .| isMark .| (block .== .all(0x5F))
            let isSuspect =
                (self.block(at: index &- 1) .== .all(0x2F))
                .& ((block .== .all(0x2F)) .| (block .== .all(0x2E)))
            let offset = (isPlain .& .!isSuspect).firstFalse
            index &+= offset
            if offset < 16 { return index }
        }
        return index
    }

    /// The first line feed in `start..<end`, or nil.
    @inline(__always)
    func firstLineFeed(from start: Int, to end: Int) -> Int? {
        guard start >= 0, start < end, end <= count else { return nil }
        // Safe: start..<end lies in the span, as checked above, and the pointer does not escape.
        return withUnsafeBytes { buffer -> Int? in
            guard let base = buffer.baseAddress else { return nil }
            guard let found = memchr(base + start, 0x0A, end &- start) else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// Sixteen bytes; traps when the span has fewer from `index` on.
    @inline(__always)
    private func block(at index: Int) -> SIMD16<UInt8> {
        // Safe: every bit pattern is a SIMD16<UInt8>, and the load itself checks its bounds.
        unsafe bytes.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
    }
}

extension SIMD16<UInt8> {
    @inline(__always)
    fileprivate var isAlphanumeric: SIMDMask<SIMD16<Int8>> {
        (((self | .all(0x20)) &- .all(0x61)) .< .all(26)) .| ((self &- .all(0x30)) .< .all(10))
    }

    /// Below SP, or DEL.
    @inline(__always)
    fileprivate var isControl: SIMDMask<SIMD16<Int8>> {
        (self .< .all(0x20)) .| (self .== .all(0x7F))
    }

    /// The byte in every lane. Operators with a scalar on the right are generic in the standard
    /// library and work lane by lane; between two vectors each is one instruction.
    @inline(__always)
    fileprivate static func all(_ byte: UInt8) -> Self { Self(repeating: byte) }
}

extension SIMDMask<SIMD16<Int8>> {
    /// Whether a lane is set.
    @inline(__always)
    fileprivate var hasTrue: Bool {
        // Safe: as in `firstTrue`.
        let words = unsafe unsafeBitCast(self, to: SIMD2<UInt64>.self)
        return words[0] | words[1] != 0
    }

    /// The index of the first lane that is set, or 16.
    @inline(__always)
    fileprivate var firstTrue: Int {
        // Safe: a mask of sixteen bytes and two words have the same size, and any bits are words.
        let words = unsafe unsafeBitCast(self, to: SIMD2<UInt64>.self)
        if words[0] != 0 { return words[0].littleEndian.trailingZeroBitCount &>> 3 }
        if words[1] != 0 { return 8 &+ words[1].littleEndian.trailingZeroBitCount &>> 3 }
        return 16
    }

    /// The index of the first lane that is not set, or 16.
    @inline(__always)
    fileprivate var firstFalse: Int { (.!self).firstTrue }
}
