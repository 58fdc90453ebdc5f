internal import CPlatform

/// How long what a host name means holds, by the word of the name servers (RFC 1035, section 3.2.1).
/// getaddrinfo(3) does not tell, so that they are asked once more.
public enum NameLifetime {
    private static let address: UInt16 = 1
    private static let alias: UInt16 = 5
    private static let address6: UInt16 = 28
    /// Without EDNS no answer over UDP is longer than 512; one over TCP is cut here.
    private static let answerLimit = 4096

    /// The shortest life of the records that lead to a host's addresses (of IPv4, where it has any),
    /// in whole seconds; nil when no name server knows the host (but a file of hosts may). Blocks:
    /// never call it on a loop.
    public static func askBlocking(_ host: String) -> Duration? {
        // RFC 6761, section 6.3: not a name server's business.
        if host == "localhost" || host.hasSuffix(".localhost") { return nil }
        return query(host, address) ?? query(host, address6)
    }

    private static func query(_ host: String, _ type: UInt16) -> Duration? {
        let message = [UInt8](unsafeUninitializedCapacity: answerLimit) { buffer, count in
            let length = CPlatform_query_name(
                host, Int32(type), buffer.baseAddress, Int32(buffer.count))
            count = max(0, Int(length))
        }
        return shortest(in: message)
    }

    /// The shortest life of the address and alias records among the answers of a message (RFC 1035,
    /// section 4.1); nil when there are none, or the message is malformed before their end.
    static func shortest(in message: [UInt8]) -> Duration? {
        var reader = MessageReader(bytes: message)
        guard reader.skip(4), let questions = reader.number(), let answers = reader.number(),
            reader.skip(4)
        else { return nil }
        for _ in 0..<questions {
            guard reader.skipName(), reader.skip(4) else { return nil }
        }
        var shortest: UInt32?
        for _ in 0..<answers {
            guard reader.skipName(), let type = reader.number(), reader.skip(2),
                let high = reader.number(), let low = reader.number(),
                let length = reader.number(), reader.skip(Int(length))
            else { return nil }
            if ![address, alias, address6].contains(type) { continue }
            let seconds = UInt32(high) << 16 | UInt32(low)
            // RFC 2181, section 8: the highest bit is not for use.
            let life = seconds > UInt32(Int32.max) ? 0 : seconds
            shortest = min(shortest ?? life, life)
        }
        return shortest.map { .seconds(Int64($0)) }
    }

    private struct MessageReader {
        let bytes: [UInt8]
        var place = 0

        mutating func skip(_ count: Int) -> Bool {
            if count > bytes.count - place { return false }
            place += count
            return true
        }

        mutating func byte() -> UInt8? {
            if place == bytes.count { return nil }
            defer { place += 1 }
            return bytes[place]
        }

        mutating func number() -> UInt16? {
            guard let high = byte(), let low = byte() else { return nil }
            return UInt16(high) << 8 | UInt16(low)
        }

        /// Labels up to the root, or to a pointer, which ends a name (section 4.1.4).
        mutating func skipName() -> Bool {
            while let length = byte() {
                switch length {
                case 0: return true
                case 0xC0...: return skip(1)
                case ...63: if !skip(Int(length)) { return false }
                default: return false
                }
            }
            return false
        }
    }
}
