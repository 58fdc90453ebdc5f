extension IPAddress {
    /// What one client is where clients are counted: an IPv4 address as it is, of an IPv6 address
    /// the /64 network, as `appendShareKey` has it.
    public var clientNetwork: IPAddress {
        isIPv4 ? self : IPAddress(high: high, low: 0)
    }
}
