/// The characters of a JSON string (RFC 8259, section 7).
enum JSONString {
    /// Checks a string and resolves its escapes in place; a resolved escape is never longer than it
    /// was.
    ///
    /// - Parameter start: The first byte behind the opening quotation mark.
    /// - Returns: Where the decoded characters end, and where the text goes on behind the closing
    ///   mark.
    @inline(__always)
    static func resolve(
        _ text: inout MutableSpan<UInt8>, from start: Int
    ) throws(JSONError) -> (characters: Int, text: Int) {
        var read = plainEnd(text.span.bytes, from: start)
        while read < text.count {
            let byte = text[read]
            if byte == UInt8(ascii: "\"") { return (read, read + 1) }
            guard byte >= 0x20 else { throw .syntax }
            if byte == UInt8(ascii: "\\") || byte >= 0x80 {
                return try resolveSlowly(&text, from: read)
            }
            read += 1
        }
        throw .syntax
    }

    /// Passes over plain characters, eight at a time.
    ///
    /// - Returns: The first byte that is not plain, or one of the last seven.
    @inline(__always)
    private static func plainEnd(_ text: RawSpan, from start: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var read = start
        while text.byteCount &- read >= 8 {
            let bytes = UInt64(
                littleEndian: text.unsafeLoadUnaligned(fromByteOffset: read, as: UInt64.self))
            // A borrow from one byte to the next only begins in a byte that is found, so the lowest
            // bit is right, and it is the first byte that matters.
            let marks = (bytes ^ ones &* 0x22) &- ones
            let escapes = (bytes ^ ones &* 0x5C) &- ones
            let controls = bytes &- ones &* 0x20
            let found = (marks | escapes | controls | bytes) & (ones &* 0x80)
            if found != 0 { return read &+ found.trailingZeroBitCount / 8 }
            read &+= 8
        }
        return read
    }

    /// Goes on from the first byte that is not plain ASCII.
    private static func resolveSlowly(
        _ text: inout MutableSpan<UInt8>, from start: Int
    ) throws(JSONError) -> (characters: Int, text: Int) {
        var read = start
        var write = start
        while read < text.count {
            let byte = text[read]
            switch byte {
            case UInt8(ascii: "\""):
                return (write, read + 1)
            case UInt8(ascii: "\\"):
                try escape(&text, read: &read, write: &write)
            case 0x20..<0x80:
                text[write] = byte
                read += 1
                write += 1
            case 0x80...:
                try sequence(&text, read: &read, write: &write)
            default:
                throw .syntax
            }
        }
        throw .syntax
    }

    /// Copies one character of two to four bytes: the well-formed sequences of Unicode, table 3-7.
    private static func sequence(
        _ text: inout MutableSpan<UInt8>, read: inout Int, write: inout Int
    ) throws(JSONError) {
        let lead = text[read]
        let (length, second): (Int, ClosedRange<UInt8>)
        switch lead {
        case 0xC2...0xDF: (length, second) = (2, 0x80...0xBF)
        case 0xE0: (length, second) = (3, 0xA0...0xBF)
        case 0xED: (length, second) = (3, 0x80...0x9F)
        case 0xE1...0xEF: (length, second) = (3, 0x80...0xBF)
        case 0xF0: (length, second) = (4, 0x90...0xBF)
        case 0xF1...0xF3: (length, second) = (4, 0x80...0xBF)
        case 0xF4: (length, second) = (4, 0x80...0x8F)
        default: throw .syntax
        }
        guard length <= text.count - read, second.contains(text[read + 1]) else { throw .syntax }
        for offset in 2..<max(length, 2) where text[read + offset] & 0xC0 != 0x80 {
            throw .syntax
        }
        for _ in 0..<length {
            text[write] = text[read]
            read += 1
            write += 1
        }
    }

    private static func escape(
        _ text: inout MutableSpan<UInt8>, read: inout Int, write: inout Int
    ) throws(JSONError) {
        guard read + 1 < text.count else { throw .syntax }
        let character: UInt8
        switch text[read + 1] {
        case UInt8(ascii: "\""): character = UInt8(ascii: "\"")
        case UInt8(ascii: "\\"): character = UInt8(ascii: "\\")
        case UInt8(ascii: "/"): character = UInt8(ascii: "/")
        case UInt8(ascii: "b"): character = 0x08
        case UInt8(ascii: "f"): character = 0x0C
        case UInt8(ascii: "n"): character = 0x0A
        case UInt8(ascii: "r"): character = 0x0D
        case UInt8(ascii: "t"): character = 0x09
        case UInt8(ascii: "u"): return try unicodeEscape(&text, read: &read, write: &write)
        default: throw .syntax
        }
        text[write] = character
        read += 2
        write += 1
    }

    /// Resolves `\uXXXX`, or a pair of them for a character beyond the basic plane. Half a pair is
    /// no character, so it is refused instead of replaced: two names must not become one.
    private static func unicodeEscape(
        _ text: inout MutableSpan<UInt8>, read: inout Int, write: inout Int
    ) throws(JSONError) {
        var scalar = try hexadecimal(text, at: read + 2)
        read += 6
        if scalar & 0xFC00 == 0xD800 {
            guard read + 1 < text.count, text[read] == UInt8(ascii: "\\"),
                text[read + 1] == UInt8(ascii: "u")
            else { throw .syntax }
            let low = try hexadecimal(text, at: read + 2)
            guard low & 0xFC00 == 0xDC00 else { throw .syntax }
            scalar = 0x10000 + (scalar & 0x3FF) << 10 | (low & 0x3FF)
            read += 6
        }
        guard let unicode = Unicode.Scalar(scalar) else { throw .syntax }
        for byte in UTF8.encode(unicode) ?? .init() {
            text[write] = byte
            write += 1
        }
    }

    private static func hexadecimal(
        _ text: borrowing MutableSpan<UInt8>, at start: Int
    ) throws(JSONError) -> UInt32 {
        guard start + 4 <= text.count else { throw .syntax }
        var value: UInt32 = 0
        for index in start..<(start + 4) {
            guard let digit = text[index].hexadecimalDigit else { throw .syntax }
            value = value << 4 | UInt32(digit)
        }
        return value
    }
}
