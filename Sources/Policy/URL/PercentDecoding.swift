/// One byte of a URL as a reader will see it, and where the next one starts.
struct DecodedByte {
    /// The byte that stands there, decoded once.
    var value: UInt8
    /// Index behind it.
    var end: Int

    /// Decodes the byte at `start`: "%XX" (RFC 3986, section 2.1), or the byte itself where that is
    /// not well formed.
    @inline(__always)
    init(_ bytes: Span<UInt8>, at start: Int) {
        value = bytes[start]
        end = start + 1
        if value == UInt8(ascii: "%") { decode(bytes) }
    }

    /// As above, and again while the outcome is "%" before two more digits: a byte that was encoded
    /// several times counts as what it will be in the end.
    @inline(__always)
    init(_ bytes: Span<UInt8>, fullyAt start: Int) {
        self.init(bytes, at: start)
        while value == UInt8(ascii: "%"), decode(bytes) {}
    }

    /// Takes the two digits at `end`, if there are two.
    @discardableResult
    private mutating func decode(_ bytes: Span<UInt8>) -> Bool {
        guard end + 1 < bytes.count, let high = hexadecimalDigit(bytes[end]),
            let low = hexadecimalDigit(bytes[end + 1])
        else { return false }
        value = high << 4 | low
        end += 2
        return true
    }
}
