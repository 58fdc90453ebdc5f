/// Version 1 of the PROXY protocol: one line of text (section 2.1).
enum TextProxyHeader {
    /// Bytes of the longest line, with its CRLF.
    static let longest = 107

    private static let start = Array("PROXY ".utf8)
    private static let unknown = Array("UNKNOWN".utf8)

    /// As `ProxyHeader.parse`.
    static func parse(_ bytes: Span<UInt8>) throws(ProxyHeaderError) -> ProxyHeader? {
        for index in 0..<min(bytes.count, start.count) where bytes[index] != start[index] {
            throw .signature
        }
        guard let end = try endOfLine(bytes) else { return nil }
        var words = Words(bytes.extracting(start.count..<end))
        let origin = try origin(&words)
        return ProxyHeader(origin: origin, length: end + 2)
    }

    /// The index of the CRLF; nil when it has not come yet.
    private static func endOfLine(_ bytes: Span<UInt8>) throws(ProxyHeaderError) -> Int? {
        for index in 0..<min(bytes.count, longest) {
            switch bytes[index] {
            case 0x0A: throw .address
            case 0x0D where index + 1 == longest: throw .tooLong
            case 0x0D where index + 1 == bytes.count: return nil
            case 0x0D where bytes[index + 1] == 0x0A: return index
            case 0x0D: throw .address
            default: continue
            }
        }
        if bytes.count >= longest { throw .tooLong }
        return nil
    }

    private static func origin(_ words: inout Words) throws(ProxyHeaderError)
        -> ProxyHeader.Origin
    {
        let family = words.next()
        // Whatever follows it has to be ignored.
        if isEqual(family, unknown.span) { return .unknown }
        guard family.count == 4, family[0] == UInt8(ascii: "T"), family[1] == UInt8(ascii: "C"),
            family[2] == UInt8(ascii: "P")
        else { throw .family }
        let isIPv6: Bool
        switch family[3] {
        case UInt8(ascii: "4"): isIPv6 = false
        case UInt8(ascii: "6"): isIPv6 = true
        default: throw .family
        }
        let source = try address(words.next(), isIPv6)
        _ = try address(words.next(), isIPv6)
        guard isPort(words.next()), isPort(words.next()), words.isAtEnd else { throw .address }
        return .client(source)
    }

    private static func address(_ text: Span<UInt8>, _ isIPv6: Bool) throws(ProxyHeaderError)
        -> IPAddress
    {
        var hasColon = false
        for index in text.indices where text[index] == UInt8(ascii: ":") { hasColon = true }
        guard hasColon == isIPv6, let address = IPAddress(text: text) else { throw .address }
        return address
    }

    private static func isPort(_ text: Span<UInt8>) -> Bool {
        guard (1...5).contains(text.count), text.count == 1 || text[0] != UInt8(ascii: "0") else {
            return false
        }
        var value = 0
        for index in text.indices {
            let digit = text[index] &- UInt8(ascii: "0")
            if digit > 9 { return false }
            value = value * 10 + Int(digit)
        }
        return value <= 65535
    }

    /// The words of a line, with exactly one space between two.
    private struct Words: ~Escapable {
        private let text: Span<UInt8>
        private var position = 0
        /// The last word was taken.
        private(set) var isAtEnd = false

        @_lifetime(copy text)
        init(_ text: Span<UInt8>) {
            self.text = text
        }

        /// The next word; empty when there is none.
        @_lifetime(copy self)
        mutating func next() -> Span<UInt8> {
            let start = position
            var end = start
            while end < text.count && text[end] != 0x20 { end += 1 }
            isAtEnd = end == text.count
            position = isAtEnd ? end : end + 1
            return text.extracting(start..<end)
        }
    }
}
