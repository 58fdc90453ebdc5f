internal import Policy

/// What one client is to a limit, as a hash that nobody can choose: SipHash, as the standard library
/// has it, with a secret that each table has of its own. No hash is 0.
struct ClientHash: Sendable {
    /// Who has to share a bucket when the table is full. Wide enough that nobody's own network is
    /// several of them, narrow enough that strangers seldom are in one.
    private static let neighbourhood = NetworkPrefixes(ipv4: 24, ipv6: 48)

    private let secret = UInt64.random(in: .min ... .max)
    private let secondSecret = UInt64.random(in: .min ... .max)
    private let networks: NetworkPrefixes
    private let neighbourhood: NetworkPrefixes

    /// - Parameter networks: What one client network is.
    init(_ networks: NetworkPrefixes) {
        self.networks = networks
        neighbourhood = networks.widened(to: Self.neighbourhood)
    }

    /// The network of an address; those without one are one network.
    func network(_ address: IPAddress?) -> UInt64 {
        hash(0) { $0.combine(address?.network(networks)) }
    }

    /// A verified app.
    func app(_ appID: String, project: Int) -> UInt64 {
        hash(1) {
            $0.combine(project)
            $0.combine(appID)
        }
    }

    /// The value of a field.
    func value(_ value: Span<UInt8>) -> UInt64 {
        hash(2) { hasher in value.withUnsafeBytes { hasher.combine(bytes: $0) } }
    }

    /// The neighbourhood of an address.
    func neighbourhood(_ address: IPAddress?) -> UInt64 {
        hash(3) { $0.combine(address?.network(neighbourhood)) }
    }

    @inline(__always)
    private func hash(_ kind: UInt64, _ feed: (inout Hasher) -> Void) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(secret)
        // The process's own seed may be known (SWIFT_DETERMINISTIC_HASHING), these two are not.
        hasher.combine(secondSecret ^ kind)
        feed(&hasher)
        return UInt64(truncatingIfNeeded: hasher.finalize()) | 1
    }
}
