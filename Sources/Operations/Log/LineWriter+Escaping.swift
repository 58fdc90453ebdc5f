extension LineWriter {
    /// Appends text of unknown origin, so that it can stand between the quotes of a JSON string:
    /// printable ASCII whatever the bytes are, and without anything that looks like a token
    /// (pitfall O5).
    ///
    /// Valid UTF-8 becomes `\uXXXX`; a byte that is not part of valid UTF-8 becomes the four
    /// characters `\xNN`. A terminal, a line splitter or a JSON parser finds nothing to trip over.
    ///
    /// - Parameter limit: Bytes of the text that are looked at; the rest is cut off.
    @inline(__always)
    mutating func append(escaping text: Span<UInt8>, limit: Int) {
        let bytes = text.extracting(first: limit)
        if bytes.isPlain {
            append(verbatim: bytes)
        } else {
            appendSlowly(escaping: bytes)
        }
    }

    /// The same for a string of the configuration or of an event.
    mutating func append(escaping text: String, limit: Int) {
        var text = text
        text.withUTF8 { utf8 in
            append(escaping: utf8.span, limit: limit)
        }
    }

    @inline(never)
    private mutating func appendSlowly(escaping bytes: Span<UInt8>) {
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "e"), let run = bytes.tokenRun(at: index) {
                append("[redacted]")
                index += run
            } else if byte < 0x80 {
                appendASCII(byte)
                index += 1
            } else if let (scalar, length) = bytes.scalar(at: index) {
                for unit in scalar.utf16 { appendUnicodeEscape(unit) }
                index += length
            } else {
                append("\\\\x")
                appendHexDigit(byte >> 4)
                appendHexDigit(byte & 0xF)
                index += 1
            }
        }
    }

    private mutating func appendASCII(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""): append("\\\"")
        case UInt8(ascii: "\\"): append("\\\\")
        case UInt8(ascii: "\n"): append("\\n")
        case UInt8(ascii: "\r"): append("\\r")
        case UInt8(ascii: "\t"): append("\\t")
        case 0x20...0x7E: append(byte: byte)
        default: appendUnicodeEscape(UInt16(byte))
        }
    }

    private mutating func appendUnicodeEscape(_ unit: UInt16) {
        append("\\u")
        appendHexDigit(UInt8(truncatingIfNeeded: unit >> 12))
        appendHexDigit(UInt8(truncatingIfNeeded: unit >> 8) & 0xF)
        appendHexDigit(UInt8(truncatingIfNeeded: unit >> 4) & 0xF)
        appendHexDigit(UInt8(truncatingIfNeeded: unit) & 0xF)
    }

    private mutating func appendHexDigit(_ digit: UInt8) {
        append(byte: digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") - 10 + digit)
    }
}

extension Span where Element == UInt8 {
    /// Whether the bytes need no escaping and hold no `J`, without which there is no token in them.
    ///
    /// Eight bytes at a time: in each byte of `word`, the top bit of one of the terms is set when
    /// the byte is special. Borrows between bytes can only follow a special byte, so they cause no
    /// false "plain".
    var isPlain: Bool {
        let raw = self.bytes
        var index = 0
        while index + 8 <= count {
            // Safe: the span is bounds-checked here, and any bits are a UInt64.
            let word = unsafe raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            let belowSpace = word &- 0x2020_2020_2020_2020
            let aboveTilde = (word &+ 0x0101_0101_0101_0101) | word
            let quote = (word ^ 0x2222_2222_2222_2222) &- 0x0101_0101_0101_0101
            let backslash = (word ^ 0x5C5C_5C5C_5C5C_5C5C) &- 0x0101_0101_0101_0101
            let letterJ = (word ^ 0x4A4A_4A4A_4A4A_4A4A) &- 0x0101_0101_0101_0101
            let special = belowSpace | aboveTilde | quote | backslash | letterJ
            if special & 0x8080_8080_8080_8080 != 0 { return false }
            index += 8
        }
        while index < count {
            switch self[index] {
            case 0...0x1F, 0x22, 0x4A, 0x5C, 0x7F...0xFF: return false
            default: index += 1
            }
        }
        return true
    }

    /// How long the run of token characters is that starts with `eyJ` at `index`; nil when what is
    /// there is too short to be a token, or does not start like one.
    ///
    /// `eyJ` is base64url for `{"`: each JSON part of a JWS starts with it. Padding, the base64
    /// alphabet and percent-encoding count as part of the run.
    func tokenRun(at index: Int) -> Int? {
        let shortest = 16
        guard count - index >= shortest, self[index] == UInt8(ascii: "e"),
            self[index + 1] == UInt8(ascii: "y"), self[index + 2] == UInt8(ascii: "J")
        else { return nil }
        var end = index + 3
        while end < count, self[end].isTokenCharacter { end += 1 }
        return end - index >= shortest ? end - index : nil
    }

    /// The Unicode scalar whose UTF-8 starts at `index`, and its length; nil when the bytes there
    /// are not valid UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
    fileprivate func scalar(at index: Int) -> (Unicode.Scalar, Int)? {
        let lead = self[index]
        let (length, least): (Int, UInt32)
        var value: UInt32
        switch lead {
        case 0x00...0x7F: (length, least, value) = (1, 0, UInt32(lead))
        case 0xC2...0xDF: (length, least, value) = (2, 0x80, UInt32(lead & 0x1F))
        case 0xE0...0xEF: (length, least, value) = (3, 0x800, UInt32(lead & 0x0F))
        case 0xF0...0xF4: (length, least, value) = (4, 0x10000, UInt32(lead & 0x07))
        default: return nil
        }
        guard count - index >= length else { return nil }
        for offset in 1..<length {
            let byte = self[index + offset]
            guard byte & 0xC0 == 0x80 else { return nil }
            value = value << 6 | UInt32(byte & 0x3F)
        }
        guard value >= least, let scalar = Unicode.Scalar(value) else { return nil }
        return (scalar, length)
    }
}

extension UInt8 {
    fileprivate var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
            UInt8(ascii: "."), UInt8(ascii: "="), UInt8(ascii: "+"), UInt8(ascii: "/"),
            UInt8(ascii: "%"), UInt8(ascii: "~"):
            true
        default:
            false
        }
    }
}
