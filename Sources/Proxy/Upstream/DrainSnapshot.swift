/// Which servers an operator took out of service. Immutable; every loop has the newest one.
public struct DrainSnapshot: Sendable {
    /// Counts the snapshots: a later one replaces an earlier one.
    let change: UInt64
    private let servers: Set<HealthSnapshot.Server>

    /// - Parameter servers: All others get requests.
    init(change: UInt64 = 0, servers: Set<HealthSnapshot.Server> = []) {
        self.change = change
        self.servers = servers
    }

    /// Whether a server gets no new requests.
    func isDraining(_ label: String, of upstream: String) -> Bool {
        !servers.isEmpty && servers.contains(.init(upstream: upstream, label: label))
    }
}
