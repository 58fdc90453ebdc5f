/// Whether an operator took a server out of service.
public struct ServerDrainState: Sendable {
    /// The name in the configuration.
    var upstream: String
    /// The address.
    var server: String
    var isDraining: Bool

    public init(upstream: String, server: String, isDraining: Bool) {
        self.upstream = upstream
        self.server = server
        self.isDraining = isDraining
    }
}

extension MetricsPage {
    /// Appends the families of changes that operators make.
    func appendAdmin(
        _ admin: AdminAccess, _ servers: [ServerDrainState], to text: inout MetricsText
    ) {
        if !servers.isEmpty {
            text.family(
                "portcullis_upstream_server_draining", .gauge,
                "Whether an operator took a server out of service.")
        }
        for server in servers {
            text.sample(
                [("upstream", server.upstream), ("server", server.server)],
                server.isDraining ? 1 : 0)
        }
        text.family(
            "portcullis_admin_changes_total", .counter,
            "Requests for changes through the admin listener by how they ended.")
        for outcome in AdminAccess.Outcome.allCases {
            text.sample([("result", outcome.rawValue)], admin.total(outcome))
        }
    }
}
