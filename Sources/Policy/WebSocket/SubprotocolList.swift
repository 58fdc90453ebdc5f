/// Walks the entries of a `Sec-WebSocket-Protocol` value (RFC 6455, section 4.1). One of them may be
/// a token: browsers let a page set no other field of the handshake.
///
/// What begins with `appcheck.` in any case is a token, whatever stands behind it: an entry that is
/// not quite one must not reach a backend, or a log, as if it were something else.
public struct SubprotocolList {
    /// One entry, without the blanks around it.
    public struct Entry: Equatable {
        /// Where it is in the value.
        public let range: Range<Int>
        /// Where its token is, which may be empty or malformed; nil when it is no such entry.
        public let token: Range<Int>?
    }

    private static let prefix: StaticString = "appcheck."
    private var index = 0

    public init() {}

    /// The next entry that is not empty, or nil at the end. Only a comma separates entries: quotes,
    /// which the syntax has no place for, protect none.
    public mutating func next(in value: Span<UInt8>) -> Entry? {
        while index < value.count {
            var start = index
            while index < value.count, value[index] != UInt8(ascii: ",") { index += 1 }
            var end = index
            index += 1
            while start < end, Self.isBlank(value[start]) { start += 1 }
            while end > start, Self.isBlank(value[end - 1]) { end -= 1 }
            if start < end {
                return Entry(range: start..<end, token: Self.token(in: value, start..<end))
            }
        }
        return nil
    }

    private static func token(in value: Span<UInt8>, _ range: Range<Int>) -> Range<Int>? {
        let length = prefix.utf8CodeUnitCount
        guard range.count >= length else { return nil }
        let isToken = prefix.withUTF8Buffer { prefix in
            for offset in prefix.indices
            where lowercased(value[range.lowerBound + offset]) != prefix[offset] {
                return false
            }
            return true
        }
        return isToken ? (range.lowerBound + length)..<range.upperBound : nil
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
