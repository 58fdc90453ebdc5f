/// One answer of a server, or an element of one.
final class RedisReply {
    enum Kind {
        case status, error, string, integer, null, array
    }

    let kind: Kind
    /// The text of a status, an error or a string.
    let bytes: [UInt8]
    /// The value of an integer.
    let integer: Int64
    /// What an array holds.
    private(set) var elements: [RedisReply] = []

    init(_ kind: Kind, bytes: [UInt8] = [], integer: Int64 = 0) {
        self.kind = kind
        self.bytes = bytes
        self.integer = integer
    }

    /// Adds the next element of an array.
    func append(_ element: RedisReply) {
        elements.append(element)
    }

    /// The server did what it was told.
    var isOK: Bool { kind == .status && bytes == Self.ok }

    /// The text as characters; what is not UTF-8 is replaced.
    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The number that an integer is or a text spells in decimal digits.
    var number: Int64? {
        switch kind {
        case .integer: integer
        case .string, .status: Int64(text)
        case .error, .null, .array: nil
        }
    }

    /// The first word of an error, such as "OOM"; nil for everything else. The text behind it may
    /// repeat what the server was sent, a password for example, so nobody logs it.
    var errorCode: String? {
        if kind != .error { return nil }
        let word = bytes.prefix(Self.longestCode + 1).prefix { Self.codeCharacters.contains($0) }
        if word.isEmpty || word.count > Self.longestCode { return "ERR" }
        return String(decoding: word, as: UTF8.self)
    }

    private static let ok = Array("OK".utf8)
    private static let longestCode = 32
    private static let codeCharacters = UInt8(ascii: "A")...UInt8(ascii: "Z")
}
