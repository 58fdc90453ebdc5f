/// Which servers fail their checks. Immutable; every loop has the newest one.
public struct HealthSnapshot: Sendable {
    /// A server of an upstream.
    public struct Server: Hashable, Sendable {
        /// The upstream's name in the configuration.
        public let upstream: String
        /// The address as text.
        public let label: String

        public init(upstream: String, label: String) {
            self.upstream = upstream
            self.label = label
        }
    }

    /// Counts the snapshots: a later one replaces an earlier one.
    let change: UInt64
    private let unhealthy: Set<Server>

    /// - Parameter unhealthy: All others are healthy, and so are those that nobody checks.
    init(change: UInt64 = 0, unhealthy: Set<Server> = []) {
        self.change = change
        self.unhealthy = unhealthy
    }

    /// Whether a server's checks fail.
    func isUnhealthy(_ label: String, of upstream: String) -> Bool {
        // The usual case costs no hash.
        !unhealthy.isEmpty && unhealthy.contains(Server(upstream: upstream, label: label))
    }
}
