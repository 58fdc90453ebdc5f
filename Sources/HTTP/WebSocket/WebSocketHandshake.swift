internal import COpenSSL

/// The two values by which both ends of a WebSocket handshake know that the other one means it (RFC
/// 6455, section 4).
public enum WebSocketHandshake {
    /// Characters of a `Sec-WebSocket-Key`: 16 bytes in base64.
    public static let keyLength = 24
    private static let digestLength = 20
    private static let suffix: StaticString = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// The `Sec-WebSocket-Accept` that answers a key: proof that the server read this handshake, and
    /// not merely said 101 (section 4.2.2).
    public static func accept(of key: Span<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(key.count + suffix.utf8CodeUnitCount)
        key.withUnsafeBufferPointer { text.append(contentsOf: $0) }
        suffix.withUTF8Buffer { text.append(contentsOf: $0) }
        var digest = [UInt8](repeating: 0, count: digestLength)
        // Safe: SHA1 reads `text` by its count and writes 20 bytes, which `digest` has.
        SHA1(text, text.count, &digest)
        return base64(digest)
    }

    /// A key for a handshake of our own: 16 random bytes.
    public static func makeKey() -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return base64((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }

    /// RFC 4648, section 4.
    private static func base64(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let group = (0..<3).reduce(UInt32(0)) { group, offset in
                let place = index + offset
                return group << 8 | (place < bytes.count ? UInt32(bytes[place]) : 0)
            }
            for offset in 0..<4 {
                let isPadding = index + offset > bytes.count
                text.append(
                    isPadding
                        ? UInt8(ascii: "=") : character(group >> (18 - 6 * UInt32(offset)) & 63))
            }
            index += 3
        }
        return text
    }

    private static func character(_ value: UInt32) -> UInt8 {
        let value = UInt8(truncatingIfNeeded: value)
        return switch value {
        case 0..<26: value + UInt8(ascii: "A")
        case 26..<52: value - 26 + UInt8(ascii: "a")
        case 52..<62: value - 52 + UInt8(ascii: "0")
        case 62: UInt8(ascii: "+")
        default: UInt8(ascii: "/")
        }
    }
}
