/// Walks a comma-separated list of tokens (RFC 9110, section 5.6.1); empty elements are skipped.
struct TokenList {
    private var index: Int
    private let end: Int

    init(_ value: ByteRange) {
        index = Int(value.start)
        end = value.end
    }

    /// The next token, or nil at the end.
    ///
    /// - Throws: `kind` when an element is no token.
    mutating func next(
        in bytes: Span<UInt8>, orThrow kind: MalformedMessage.Kind
    ) throws(MalformedMessage) -> ByteRange? {
        while index < end, bytes[index].isBlank || bytes[index] == 0x2C { index &+= 1 }
        if index >= end { return nil }
        let start = index
        while index < end, ByteSet.token.contains(bytes[index]) { index &+= 1 }
        let token = ByteRange(start: start, count: index &- start)
        while index < end, bytes[index].isBlank { index &+= 1 }
        guard !token.isEmpty, index >= end || bytes[index] == 0x2C else {
            throw MalformedMessage(kind)
        }
        return token
    }
}

extension Span where Element == UInt8 {
    /// Whether two names are equal, letter case ignored.
    func equalsIgnoringCase(_ other: Span<UInt8>) -> Bool {
        if count != other.count { return false }
        for index in indices where self[index].lowercased != other[index].lowercased {
            return false
        }
        return true
    }
}
