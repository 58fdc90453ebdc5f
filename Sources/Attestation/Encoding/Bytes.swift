#if canImport(Glibc)
    internal import Glibc
#endif

extension Span where Element == UInt8 {
    /// Whether these are the bytes of `other`. Not constant-time: for what both sides may know.
    @inline(__always)
    func equals(_ other: Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        // Safe: memcmp reads `count` bytes, and both spans have that many.
        return withUnsafeBytes { mine in
            other.withUnsafeBytes { theirs in
                guard let mine = mine.baseAddress, let theirs = theirs.baseAddress else {
                    return true
                }
                return memcmp(mine, theirs, count) == 0
            }
        }
    }

    /// Whether these are the bytes of a literal.
    @inline(__always)
    func equals(_ literal: StaticString) -> Bool {
        guard count == literal.utf8CodeUnitCount else { return false }
        // Safe: memcmp reads `count` bytes, and both sides have that many.
        return withUnsafeBytes { bytes in
            guard let bytes = bytes.baseAddress else { return true }
            return memcmp(bytes, literal.utf8Start, count) == 0
        }
    }

    /// Below, above or at zero as this comes before, behind or at the same place as `other`, in an
    /// order of which only that it is one matters: by length, and then by the bytes.
    func order(_ other: Span<UInt8>) -> Int {
        guard count == other.count else { return count < other.count ? -1 : 1 }
        // Safe: memcmp reads `count` bytes, and both spans have that many.
        return withUnsafeBytes { mine in
            other.withUnsafeBytes { theirs in
                guard let mine = mine.baseAddress, let theirs = theirs.baseAddress else { return 0 }
                return Int(memcmp(mine, theirs, count))
            }
        }
    }

    /// Whether one of the bytes is `byte`.
    func contains(_ byte: UInt8) -> Bool {
        firstIndex(of: byte, from: 0) != nil
    }

    /// The first index, not before `start`, of `byte`.
    func firstIndex(of byte: UInt8, from start: Int) -> Int? {
        guard start < count else { return nil }
        // Safe: memchr reads the `count - start` bytes from `start` on, and the span has them.
        return withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress,
                let found = memchr(base + start, Int32(byte), count - start)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }

    /// A copy of the bytes.
    func copied() -> [UInt8] {
        withUnsafeBytes { [UInt8]($0) }
    }

    /// The bytes as text; what is not UTF-8 becomes a replacement character.
    func text() -> String {
        withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }
}

extension StaticString {
    /// Whether `byte` is one of the literal's bytes.
    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        withUTF8Buffer { $0.contains(byte) }
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit of either case, or nil for any other byte.
    var hexadecimalDigit: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
