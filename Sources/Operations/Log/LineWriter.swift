/// Writes one log line into memory that belongs to somebody else.
///
/// What does not fit is left out and remembered in `isOverflown`, so that the owner can take the
/// whole line back: half a line is not JSON.
struct LineWriter: ~Copyable {
    // Safe: only the owner of the memory makes a writer, inside the scope in which the memory is
    // pinned, and every write below compares with `capacity` first.
    private let base: UnsafeMutableRawPointer
    private let capacity: Int
    /// Bytes written.
    private(set) var count = 0
    /// Something did not fit: the line is of no use.
    private(set) var isOverflown = false

    /// Makes a writer for `memory`, which must outlive it; empty memory takes nothing.
    init(_ memory: UnsafeMutableRawBufferPointer) {
        // An empty buffer may have no address; with a capacity of 0 the stand-in is never written.
        base = memory.baseAddress ?? UnsafeMutableRawPointer(bitPattern: 1).unsafelyUnwrapped
        capacity = memory.count
    }

    /// Appends one byte as it is.
    @inline(__always)
    mutating func append(byte: UInt8) {
        guard hasRoom(1) else { return }
        base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count += 1
    }

    /// Appends a literal as it is.
    @inline(__always)
    mutating func append(_ literal: StaticString) {
        let length = literal.utf8CodeUnitCount
        guard hasRoom(length) else { return }
        // Safe: a literal has `length` bytes at its start, and there is room for them.
        (base + count).copyMemory(from: literal.utf8Start, byteCount: length)
        count += length
    }

    /// Appends bytes as they are: they must have been escaped before.
    mutating func append(verbatim bytes: Span<UInt8>) {
        let length = bytes.count
        guard length > 0, hasRoom(length) else { return }
        bytes.withUnsafeBytes { source in
            // Safe: not empty, so there is an address; the memory of a line never overlaps a span
            // that somebody reads.
            (base + count).copyMemory(
                from: source.baseAddress.unsafelyUnwrapped, byteCount: source.count)
        }
        count += length
    }

    /// Appends a number in decimal digits.
    mutating func append(decimal value: UInt64) {
        var length = 1
        var rest = value / 10
        while rest > 0 {
            rest /= 10
            length += 1
        }
        guard hasRoom(length) else { return }
        rest = value
        var index = count + length
        count = index
        repeat {
            index -= 1
            let digit = UInt8(truncatingIfNeeded: rest % 10) &+ UInt8(ascii: "0")
            base.storeBytes(of: digit, toByteOffset: index, as: UInt8.self)
            rest /= 10
        } while rest > 0
    }

    /// Appends a number in exactly `digits` decimal digits, its lowest ones.
    mutating func append(decimal value: Int64, digits: Int) {
        guard hasRoom(digits) else { return }
        var rest = UInt64(clamping: value)
        var index = count + digits
        while index > count {
            index -= 1
            let digit = UInt8(truncatingIfNeeded: rest % 10) &+ UInt8(ascii: "0")
            base.storeBytes(of: digit, toByteOffset: index, as: UInt8.self)
            rest /= 10
        }
        count += digits
    }

    @inline(__always)
    private mutating func hasRoom(_ length: Int) -> Bool {
        if capacity - count >= length { return true }
        isOverflown = true
        return false
    }
}
