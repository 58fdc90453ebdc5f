extension MetricsPage {
    /// Appends the families of changes that operators make.
    func appendAdmin(
        _ admin: AdminAccess, drained: [(upstream: String, server: String)],
        to text: inout MetricsText
    ) {
        if !drained.isEmpty {
            text.family(
                "portcullis_upstream_server_draining", .gauge,
                "1 for a server that an operator took out of service; no sample: it gets requests.")
        }
        for server in drained {
            text.sample([("upstream", server.upstream), ("server", server.server)], 1)
        }
        text.family(
            "portcullis_admin_changes_total", .counter,
            "Requests for changes through the admin listener by how they ended.")
        for outcome in AdminAccess.Outcome.allCases {
            text.sample([("result", outcome.rawValue)], admin.total(outcome))
        }
    }
}
