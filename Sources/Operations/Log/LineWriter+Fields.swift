internal import Configuration

/// A line is one flat JSON object, or in format `text` the same members as `name=value`, separated
/// by spaces and quoted as in JSON where they need it.
extension LineWriter {
    /// Starts a line with its time, level and message.
    @inline(__always)
    mutating func begin(
        _ format: Log.Format, at microseconds: Int64, level: Log.Level,
        timestamp: inout Timestamp
    ) {
        switch format {
        case .json: append("{\"ts\":\"")
        case .text: append("ts=")
        }
        timestamp.append(microseconds, to: &self)
        if format == .json { append("\"") }
        field("level", word: level.word, format)
    }

    /// Ends a line; the line feed is the chunk's.
    @inline(__always)
    mutating func end(_ format: Log.Format) {
        if format == .json { append("}") }
    }

    /// Appends a field whose value is text of unknown origin, at most `limit` bytes of it.
    @inline(__always)
    mutating func field(
        _ name: StaticString, text: [UInt8], limit: Int, _ format: Log.Format
    ) {
        appendName(name, format)
        appendValue(text.span, limit: limit, format)
    }

    /// Appends a field whose value is a string of unknown origin.
    mutating func field(_ name: StaticString, text: String, limit: Int, _ format: Log.Format) {
        appendName(name, format)
        appendValue(text, limit: limit, format)
    }

    /// Appends a field whose name is not a literal. `name` is cut off behind 64 bytes.
    mutating func field(_ name: String, text: String, limit: Int, _ format: Log.Format) {
        switch format {
        case .json:
            append(",\"")
            append(escaping: name, limit: 64)
            append("\":")
        case .text:
            append(" ")
            append(escaping: name, limit: 64)
            append("=")
        }
        appendValue(text, limit: limit, format)
    }

    /// Appends a field whose value is one of our own words: letters, digits, `_`, `.` and `/` only.
    @inline(__always)
    mutating func field(_ name: StaticString, word: StaticString, _ format: Log.Format) {
        appendName(name, format)
        if format == .json { append("\"") }
        append(word)
        if format == .json { append("\"") }
    }

    /// Appends a field whose value is the raw value of one of our enums.
    @inline(__always)
    mutating func field(_ name: StaticString, word: String, _ format: Log.Format) {
        appendName(name, format)
        if format == .json { append("\"") }
        var word = word
        word.withUTF8 { append(verbatim: $0.span) }
        if format == .json { append("\"") }
    }

    /// Appends a field whose value was rendered before, by `rendering(_:_:)`.
    @inline(__always)
    mutating func field(_ name: StaticString, rendered: [UInt8], _ format: Log.Format) {
        appendName(name, format)
        append(verbatim: rendered.span)
    }

    /// Appends a field whose value is a number.
    @inline(__always)
    mutating func field(_ name: StaticString, number: UInt64, _ format: Log.Format) {
        appendName(name, format)
        append(decimal: number)
    }

    /// Appends a field whose value is sixteen hexadecimal digits, or twice as many.
    mutating func field(
        _ name: StaticString, hexadecimal first: UInt64, _ second: UInt64?, _ format: Log.Format
    ) {
        appendName(name, format)
        if format == .json { append("\"") }
        append(hexadecimal: first)
        if let second { append(hexadecimal: second) }
        if format == .json { append("\"") }
    }

    /// Appends sixteen digits in lower case.
    mutating func append(hexadecimal value: UInt64) {
        for shift in stride(from: UInt64(60), through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: value >> shift & 15)
            append(byte: digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        }
    }

    /// Appends a field that is there when it is true.
    @inline(__always)
    mutating func flag(_ name: StaticString, _ format: Log.Format) {
        appendName(name, format)
        append("true")
    }

    /// What the value of a field looks like in a line, for values that are known long before.
    static func rendering(_ text: String, _ format: Log.Format) -> [UInt8] {
        let limit = 256
        // Six characters for each byte at worst, and the quotes.
        return [UInt8](unsafeUninitializedCapacity: 6 * limit + 2) { memory, count in
            var line = LineWriter(UnsafeMutableRawBufferPointer(memory))
            line.appendValue(text, limit: limit, format)
            count = line.count
        }
    }

    @inline(__always)
    private mutating func appendName(_ name: StaticString, _ format: Log.Format) {
        switch format {
        case .json:
            append(",\"")
            append(name)
            append("\":")
        case .text:
            append(" ")
            append(name)
            append("=")
        }
    }

    private mutating func appendValue(_ text: String, limit: Int, _ format: Log.Format) {
        var text = text
        text.withUTF8 { appendValue($0.span, limit: limit, format) }
    }

    @inline(__always)
    private mutating func appendValue(_ text: Span<UInt8>, limit: Int, _ format: Log.Format) {
        let isQuoted = format == .json || !text.isBare
        if isQuoted { append("\"") }
        append(escaping: text, limit: limit)
        if isQuoted { append("\"") }
    }
}

extension Log.Level {
    /// The word for `level`.
    var word: StaticString {
        switch self {
        case .error: "error"
        case .warning: "warning"
        case .info: "info"
        case .debug: "debug"
        }
    }
}

extension Span where Element == UInt8 {
    /// Whether the bytes can stand behind `name=` without quotes.
    fileprivate var isBare: Bool {
        for index in 0..<count {
            switch self[index] {
            case UInt8(ascii: " "), UInt8(ascii: "="), UInt8(ascii: "\""), UInt8(ascii: "\\"),
                0...0x1F, 0x7F...0xFF:
                return false
            default:
                continue
            }
        }
        return count > 0
    }
}
