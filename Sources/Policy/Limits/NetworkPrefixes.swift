/// How much of an address says whose it is: addresses that agree in so many bits are one client
/// network.
public struct NetworkPrefixes: Sendable, Hashable, CustomStringConvertible {
    /// Bits of an IPv4 address, 0 to 32.
    public var ipv4: Int
    /// Bits of an IPv6 address, 0 to 128.
    public var ipv6: Int

    /// Lengths outside their ranges count as the nearest inside.
    public init(ipv4: Int, ipv6: Int) {
        self.ipv4 = min(max(ipv4, 0), 32)
        self.ipv6 = min(max(ipv6, 0), 128)
    }

    /// "IPv4 /32, IPv6 /64".
    public var description: String { "IPv4 /\(ipv4), IPv6 /\(ipv6)" }

    /// The coarser of both, for each family.
    public func widened(to other: NetworkPrefixes) -> NetworkPrefixes {
        NetworkPrefixes(ipv4: min(ipv4, other.ipv4), ipv6: min(ipv6, other.ipv6))
    }
}

extension IPAddress {
    /// The first address of the network that this one lies in; of an IPv4 address an IPv4 one.
    @inline(__always)
    public func network(_ prefixes: NetworkPrefixes) -> IPAddress {
        let bits = isIPv4 ? 96 + prefixes.ipv4 : prefixes.ipv6
        // Shifts by 64 or more give 0, by less than 0 shift the other way: smart shifts do not trap.
        let highMask: UInt64 = bits >= 64 ? .max : ~(UInt64.max >> bits)
        let lowMask: UInt64 = bits >= 128 ? .max : bits <= 64 ? 0 : ~(UInt64.max >> (bits - 64))
        return IPAddress(high: high & highMask, low: low & lowMask)
    }
}
