/// How a check ended. The raw values are label values of
/// `portcullis_upstream_health_checks_total`.
public enum HealthCheckResult: String, Sendable, CaseIterable {
    case success
    /// No connection, or it ended too early.
    case connect
    /// The TLS handshake failed.
    case tls
    /// No answer in time.
    case timeout
    /// An answer, but not a good one.
    case status
    /// What came is not what the upstream's protocol asks for.
    case `protocol`
    /// The proxy had no descriptor or memory left: that says nothing about the server.
    case exhausted
}

/// What the checks know: for metrics and `portcullis status`.
public struct UpstreamHealthStatus: Sendable {
    /// A server that is checked.
    public struct Server: Sendable {
        public var upstream: String
        /// The address as text.
        public var server: String
        public var isHealthy: Bool
        /// Why the last check failed; nil when it did not.
        public var reason: String?
    }

    /// In the order of upstreams and servers.
    public var servers: [Server]
    /// Checks since the start by upstream and result.
    public var checks: [String: [HealthCheckResult: UInt64]]

    public init(
        servers: [Server] = [], checks: [String: [HealthCheckResult: UInt64]] = [:]
    ) {
        self.servers = servers
        self.checks = checks
    }
}

extension UpstreamHealthStatus.Server {
    public init(_ upstream: String, _ server: String, isHealthy: Bool, reason: String? = nil) {
        self.upstream = upstream
        self.server = server
        self.isHealthy = isHealthy
        self.reason = reason
    }
}
