/// A network in CIDR notation, or one address.
public struct IPNetwork: Sendable, Equatable {
    /// Network bytes: 4 (IPv4) or 16 (IPv6).
    public let bytes: [UInt8]
    /// Length of the prefix in bits: 0 to 32, or 0 to 128.
    public let prefix: Int

    private let base: IPAddress
    /// Bits of the 128-bit form of an address that the network fixes.
    private let high: UInt64
    private let low: UInt64

    /// Parses "10.0.0.0/8", "2001:db8::/32", "127.0.0.1". Nil when it is none of these, or when
    /// bits behind the prefix are set. "::ffff:10.0.0.0/104" is the IPv4 network "10.0.0.0/8".
    public init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let base = IPAddress(String(parts[0])) else { return nil }
        // An IPv4 address in IPv6 notation has its prefix counted in IPv6 bits.
        let width = parts[0].contains(":") ? 128 : 32
        var bits = width
        if parts.count == 2 {
            guard let length = Self.length(parts[1]), length <= width else { return nil }
            bits = length
        }
        let prefix128 = 128 - width + bits
        // ::ffff:0:0/80 would cover IPv4 and part of IPv6 at once.
        guard !base.isIPv4 || prefix128 >= 96 else { return nil }
        high = prefix128 >= 64 ? .max : ~(UInt64.max >> UInt64(prefix128))
        low = prefix128 <= 64 ? 0 : ~(prefix128 == 128 ? 0 : UInt64.max >> UInt64(prefix128 - 64))
        guard base.high & ~high == 0, base.low & ~low == 0 else { return nil }
        self.base = base
        prefix = base.isIPv4 ? prefix128 - 96 : prefix128
        bytes = base.bytes
    }

    /// Whether an address lies in the network. IPv4 addresses are in no IPv6 network, not even
    /// "::/0".
    public func contains(_ address: IPAddress) -> Bool {
        address.isIPv4 == base.isIPv4 && address.high & high == base.high
            && address.low & low == base.low
    }

    /// Whether an address (4 or 16 bytes) lies in the network; IPv4-mapped IPv6 addresses count as
    /// IPv4.
    public func contains(_ address: [UInt8]) -> Bool {
        IPAddress(bytes: address.span).map(contains) ?? false
    }

    /// A prefix length: one to three digits without leading zero.
    private static func length(_ text: Substring) -> Int? {
        let bytes = text.utf8
        guard (1...3).contains(bytes.count), bytes.count == 1 || bytes.first != UInt8(ascii: "0"),
            bytes.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 })
        else { return nil }
        return Int(text)
    }
}

extension IPAddress {
    /// The address in network byte order: 4 bytes (IPv4) or 16 (IPv6).
    public var bytes: [UInt8] {
        let all = [high, low].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
        }
        return isIPv4 ? Array(all[12...]) : all
    }
}

extension IPAddress: CustomStringConvertible {
    /// As `appendText` writes it.
    public var description: String {
        var text: [UInt8] = []
        appendText(to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}

extension IPNetwork: CustomStringConvertible {
    /// CIDR notation; a single address has no prefix.
    public var description: String {
        prefix == bytes.count * 8 ? base.description : "\(base)/\(prefix)"
    }
}
