/// Who a forwarding field says that somebody is: an address, with or without a port (RFC 7239,
/// section 6). Entries of X-Forwarded-For, which have no standard, are read in the same way.
public enum ForwardedNode: Sendable, Equatable {
    case address(IPAddress)
    /// `unknown`, or a name that hides one (`_hidden`).
    case withheld

    /// Reads "192.0.2.7", "192.0.2.7:4711", "[2001:db8::7]", "[2001:db8::7]:4711", "unknown",
    /// "_hidden", and an IPv6 address without brackets and port. Nil when it is none of these.
    public init?(text: Span<UInt8>) {
        guard !text.isEmpty else { return nil }
        if text[0] == UInt8(ascii: "[") {
            guard let end = Self.first(UInt8(ascii: "]"), in: text),
                Self.isPort(text.extracting((end + 1)...)),
                let address = IPAddress(text: text.extracting(1..<end)), !address.isIPv4
            else { return nil }
            self = .address(address)
            return
        }
        if let address = IPAddress(text: text) {
            self = .address(address)
            return
        }
        let end = Self.first(UInt8(ascii: ":"), in: text) ?? text.count
        guard Self.isPort(text.extracting(end...)) else { return nil }
        let name = text.extracting(0..<end)
        if let address = IPAddress(text: name) {
            self = .address(address)
        } else if Self.isUnknown(name) || Self.isObfuscated(name) {
            self = .withheld
        } else {
            return nil
        }
    }

    private static func first(_ byte: UInt8, in text: Span<UInt8>) -> Int? {
        for index in text.indices where text[index] == byte { return index }
        return nil
    }

    /// Nothing, or ":" and a port: up to five digits, or an obfuscated one.
    private static func isPort(_ text: Span<UInt8>) -> Bool {
        if text.isEmpty { return true }
        guard text[0] == UInt8(ascii: ":") else { return false }
        let port = text.extracting(1...)
        if isObfuscated(port) { return true }
        guard (1...5).contains(port.count) else { return false }
        for index in port.indices where port[index] &- UInt8(ascii: "0") > 9 { return false }
        return true
    }

    private static func isUnknown(_ text: Span<UInt8>) -> Bool {
        let word = Array("unknown".utf8)
        guard text.count == word.count else { return false }
        for index in text.indices where lowercased(text[index]) != word[index] { return false }
        return true
    }

    /// `_` and letters, digits, `.`, `_` or `-` behind it.
    private static func isObfuscated(_ text: Span<UInt8>) -> Bool {
        guard text.count >= 2, text[0] == UInt8(ascii: "_") else { return false }
        for index in text.indices {
            switch text[index] {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "-"):
                continue
            default: return false
            }
        }
        return true
    }
}
