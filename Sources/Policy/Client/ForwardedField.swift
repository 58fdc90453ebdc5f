/// The elements of `Forwarded` (RFC 7239, section 4), one for each proxy that a request came
/// through, the one nearest to the client first.
///
/// Strict: a field that does not follow the grammar to the letter, says a thing twice in one element
/// or names nobody as an RFC 7239 node is worth nothing as a whole, for nobody can say where the
/// part begins that a client wrote. More than 16 pairs in one element count as such a mistake. Only
/// white space behind `;`, which the grammar does not have and many proxies write, is forgiven.
public struct ForwardedField: Sendable, Equatable {
    /// What one proxy says about who connected to it.
    public struct Element: Sendable, Equatable {
        /// `for`; nil when the element has none.
        public var node: ForwardedNode?
        /// `proto`: a URI scheme (RFC 3986, section 3.1), in lower case; empty when there is none.
        public var scheme: [UInt8] = []
        /// `host`: what the client sent in `Host`, of the characters that it may have; empty when
        /// there is none.
        public var host: [UInt8] = []

        public init() {}
    }

    /// Why a field is worth nothing.
    public struct Malformed: Error, Equatable {}

    /// Four kinds of pairs have a meaning. A name is looked for among all before it, so the time for
    /// a client's element of thousands would grow with the square of its length.
    private static let pairLimit = 16

    /// The elements in the order of the message.
    public private(set) var elements: [Element] = []

    /// A field without elements.
    public init() {}

    /// Adds the elements of one field line. Empty list entries say nothing (RFC 9110, section
    /// 5.6.1).
    public mutating func append(line: Span<UInt8>) throws(Malformed) {
        var reader = PairReader(line)
        while true {
            reader.skipEmptyEntries()
            if reader.isAtEnd { return }
            elements.append(try Self.readElement(&reader))
        }
    }

    private static func readElement(_ reader: inout PairReader) throws(Malformed) -> Element {
        var element = Element()
        var names: [[UInt8]] = []
        repeat {
            // Pairs may be left out, and the semicolons between them stay.
            guard let (name, value) = try reader.nextPair() else { continue }
            guard names.count < pairLimit, !names.contains(name) else { throw Malformed() }
            names.append(name)
            switch name {
            case forName:
                guard let node = ForwardedNode(text: value.span) else { throw Malformed() }
                element.node = node
            case byName:
                guard ForwardedNode(text: value.span) != nil else { throw Malformed() }
            case protoName:
                guard isScheme(value.span) else { throw Malformed() }
                element.scheme = value.map(lowercased)
            case hostName:
                guard isHost(value.span) else { throw Malformed() }
                element.host = value
            default: break
            }
        } while reader.take(UInt8(ascii: ";"))
        guard reader.isAtEnd || reader.isAtComma else { throw Malformed() }
        return element
    }

    private static let forName = Array("for".utf8)
    private static let byName = Array("by".utf8)
    private static let protoName = Array("proto".utf8)
    private static let hostName = Array("host".utf8)

    /// Whether text is a scheme (RFC 3986, section 3.1) of at most 16 characters.
    public static func isScheme(_ text: Span<UInt8>) -> Bool {
        guard (1...16).contains(text.count), isLetter(text[0]) else { return false }
        for index in text.indices {
            let byte = text[index]
            guard isLetter(byte) || isDigit(byte) || "+-.".utf8.contains(byte) else { return false }
        }
        return true
    }

    /// Whether text has the bytes that an authority without user information may have (RFC 3986,
    /// section 3.2), 255 at most. None of them has to be escaped in quotes.
    public static func isHost(_ text: Span<UInt8>) -> Bool {
        guard (1...255).contains(text.count) else { return false }
        for index in text.indices {
            let byte = text[index]
            guard isLetter(byte) || isDigit(byte) || "-._~:[]!$&'()*+,;=%".utf8.contains(byte)
            else { return false }
        }
        return true
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    private static func isLetter(_ byte: UInt8) -> Bool {
        lowercased(byte) &- UInt8(ascii: "a") < 26
    }
}

/// Reads the pairs of one field line.
private struct PairReader: ~Escapable {
    private let text: Span<UInt8>
    private var position = 0

    @_lifetime(copy text)
    init(_ text: Span<UInt8>) {
        self.text = text
    }

    var isAtEnd: Bool { position == text.count }
    var isAtComma: Bool { !isAtEnd && text[position] == UInt8(ascii: ",") }

    mutating func skipEmptyEntries() {
        while !isAtEnd, isAtComma || isSpace(text[position]) { position += 1 }
    }

    mutating func take(_ byte: UInt8) -> Bool {
        guard !isAtEnd, text[position] == byte else { return false }
        position += 1
        return true
    }

    /// The next pair with its name in lower case; nil when none is here.
    mutating func nextPair() throws(ForwardedField.Malformed) -> (name: [UInt8], value: [UInt8])? {
        skipSpace()
        let name = takeToken()
        if name.isEmpty {
            return nil
        }
        guard take(UInt8(ascii: "=")) else { throw ForwardedField.Malformed() }
        let value = take(UInt8(ascii: "\"")) ? try takeQuoted() : takeToken()
        guard !value.isEmpty else { throw ForwardedField.Malformed() }
        skipSpace(onlyBefore: UInt8(ascii: ","))
        return (name.map(lowercased), value)
    }

    private mutating func takeToken() -> [UInt8] {
        var token: [UInt8] = []
        while !isAtEnd, isTokenByte(text[position]) {
            token.append(text[position])
            position += 1
        }
        return token
    }

    /// RFC 9110, section 5.6.4; the opening quote is behind us.
    private mutating func takeQuoted() throws(ForwardedField.Malformed) -> [UInt8] {
        var value: [UInt8] = []
        while !isAtEnd {
            var byte = text[position]
            position += 1
            if byte == UInt8(ascii: "\"") { return value }
            if byte == UInt8(ascii: "\\") {
                guard !isAtEnd else { break }
                byte = text[position]
                position += 1
            }
            value.append(byte)
        }
        throw ForwardedField.Malformed()
    }

    private mutating func skipSpace() {
        while !isAtEnd, isSpace(text[position]) { position += 1 }
    }

    /// White space before the comma of a list is part of the list.
    private mutating func skipSpace(onlyBefore byte: UInt8) {
        var end = position
        while end < text.count, isSpace(text[end]) { end += 1 }
        if end == text.count || text[end] == byte { position = end }
    }

    private func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// RFC 9110, section 5.6.2.
    private func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"),
            UInt8(ascii: "&"), UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^"), UInt8(ascii: "_"),
            UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}
