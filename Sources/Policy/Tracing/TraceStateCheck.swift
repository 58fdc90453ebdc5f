/// Decides whether `tracestate` may be passed on (W3C Trace Context, level 1, section 3.3): the lines
/// of a request are one list, and a list with one mistake is dropped as a whole. The trace goes on
/// without it.
public struct TraceStateCheck {
    /// Bytes of the lines together, with a comma between two: what everybody has to pass on.
    public static let longest = 512
    /// Members of the list.
    public static let mostMembers = 32

    private var length = 0
    private var members = 0

    public init() {}

    /// Takes the next line.
    ///
    /// - Returns: false when the list is none, or too long.
    public mutating func take(_ line: Span<UInt8>) -> Bool {
        length += line.count + (length > 0 ? 1 : 0)
        guard length <= Self.longest else { return false }
        var start = 0
        while start <= line.count {
            var end = start
            while end < line.count && line[end] != UInt8(ascii: ",") { end += 1 }
            guard takeMember(Self.trimmed(line.extracting(start..<end))) else { return false }
            start = end + 1
        }
        return members <= Self.mostMembers
    }

    /// Empty members are allowed and say nothing.
    private mutating func takeMember(_ text: Span<UInt8>) -> Bool {
        if text.isEmpty { return true }
        members += 1
        var equals = 0
        while equals < text.count && text[equals] != UInt8(ascii: "=") { equals += 1 }
        guard equals < text.count else { return false }
        return Self.isKey(text.extracting(0..<equals))
            && Self.isValue(text.extracting((equals + 1)...))
    }

    /// A key, or a tenant's key of a system: `tenant@system`.
    private static func isKey(_ key: Span<UInt8>) -> Bool {
        var at: Int?
        for index in key.indices where key[index] == UInt8(ascii: "@") {
            if at != nil { return false }
            at = index
        }
        guard let at else { return isName(key, longest: 256, mayBeginWithDigit: false) }
        return isName(key.extracting(0..<at), longest: 241, mayBeginWithDigit: true)
            && isName(key.extracting((at + 1)...), longest: 14, mayBeginWithDigit: false)
    }

    private static func isName(_ name: Span<UInt8>, longest: Int, mayBeginWithDigit: Bool) -> Bool {
        guard (1...longest).contains(name.count) else { return false }
        for index in name.indices {
            switch name[index] {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): continue
            case UInt8(ascii: "0")...UInt8(ascii: "9") where index > 0 || mayBeginWithDigit:
                continue
            case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "*"), UInt8(ascii: "/"):
                if index == 0 { return false }
            default: return false
            }
        }
        return true
    }

    /// White space around it was taken away, so the last character is no space.
    private static func isValue(_ value: Span<UInt8>) -> Bool {
        guard (1...256).contains(value.count) else { return false }
        for index in value.indices {
            switch value[index] {
            case UInt8(ascii: ","), UInt8(ascii: "="): return false
            case 0x20...0x7E: continue
            default: return false
            }
        }
        return true
    }

    @_lifetime(copy text)
    private static func trimmed(_ text: Span<UInt8>) -> Span<UInt8> {
        var start = 0
        var end = text.count
        while start < end, text[start] == 0x20 || text[start] == 0x09 { start += 1 }
        while end > start, text[end - 1] == 0x20 || text[end - 1] == 0x09 { end -= 1 }
        return text.extracting(start..<end)
    }
}
