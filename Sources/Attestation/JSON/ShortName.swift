/// A name of up to eight bytes as one number, which is compared in one step.
struct ShortName: Equatable {
    /// The bytes, the first of them lowest.
    private let bytes: UInt64
    /// How many there are: a name may end in a zero byte.
    private let count: Int

    /// - Parameter name: At most eight ASCII characters.
    @inline(__always)
    init(_ name: StaticString) {
        precondition(name.utf8CodeUnitCount <= 8)
        var bytes: UInt64 = 0
        // Safe: a literal has as many bytes as it says.
        for index in 0..<name.utf8CodeUnitCount {
            bytes |= UInt64(name.utf8Start[index]) << UInt64(8 &* index)
        }
        self.bytes = bytes
        count = name.utf8CodeUnitCount
    }

    /// A run of bytes in a text, or nil for more than eight.
    @inline(__always)
    init?(_ text: RawSpan, from start: Int, count: Int) {
        guard count <= 8 else { return nil }
        self.count = count
        if start <= text.byteCount &- 8 {
            let eight = UInt64(
                littleEndian: text.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self))
            // A shift by 64, which keeps all eight, is defined: it leaves no bit.
            bytes = eight & ~(~0 << UInt64(8 &* count))
        } else {
            var bytes: UInt64 = 0
            for offset in (0..<count).reversed() {
                let byte = text.unsafeLoad(fromByteOffset: start + offset, as: UInt8.self)
                bytes = bytes << 8 | UInt64(byte)
            }
            self.bytes = bytes
        }
    }
}
