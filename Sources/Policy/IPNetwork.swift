/// A network in CIDR notation, or one address.
public struct IPNetwork: Sendable, Equatable {
    /// Network bytes: 4 (IPv4) or 16 (IPv6).
    public let bytes: [UInt8]
    public let prefix: Int

    /// Parses "10.0.0.0/8", "2001:db8::/32", "127.0.0.1". Nil when it is none of these, or when bits behind the
    /// prefix are set.
    public init?(_ text: String) {
        return nil
    }

    /// Whether an address (4 or 16 bytes) lies in the network; IPv4-mapped IPv6 addresses count as IPv4.
    public func contains(_ address: [UInt8]) -> Bool {
        false
    }
}
