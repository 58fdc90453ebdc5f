internal import Proxy

/// What the page says of upstreams and their servers.
extension MetricsPage {
    /// Appends the families of upstreams. Servers are those that are checked now.
    func appendUpstreams(_ health: UpstreamHealthStatus, to text: inout MetricsText) {
        text.family(
            "portcullis_upstream_duration_seconds", .histogram,
            "From the choice of an upstream to the end of its answer.")
        let upstreams = merged(loops.map(\.allUpstreams))
        for upstream in upstreams {
            text.samples([("upstream", upstream.name)], sum(upstream.values.map(\.totals)))
        }
        text.family(
            "portcullis_upstream_events_total", .counter,
            "Ejections by a loop; requests that met too few servers, waited, or were retried.")
        let events = loops.map(\.allUpstreamEvents)
        // Something may have happened before the first request has ended.
        let names = Set(upstreams.map(\.name)).union(events.flatMap(\.keys)).sorted()
        let owners = names.map { name in (name: name, values: events.compactMap { $0[name] }) }
        appendWords(owners, "upstream", by: "event", to: &text) { $0 }
        appendHandshakes(to: &text)
        if health.servers.isEmpty && health.checks.isEmpty { return }
        text.family(
            "portcullis_upstream_server_healthy", .gauge,
            "Whether the checks of a server say that it works.")
        for server in health.servers {
            text.sample(
                [("upstream", server.upstream), ("server", server.server)],
                server.isHealthy ? 1 : 0)
        }
        text.family(
            "portcullis_upstream_health_checks_total", .counter, "Checks by how they ended.")
        for (upstream, counts) in health.checks.sorted(by: { $0.key < $1.key }) {
            for result in HealthCheckResult.allCases {
                text.sample(
                    [("upstream", upstream), ("result", result.rawValue)], counts[result] ?? 0)
            }
        }
    }

    /// Nothing where no upstream has TLS.
    private func appendHandshakes(to text: inout MetricsText) {
        let handshakes = merged(loops.map(\.allUpstreamHandshakes))
        if handshakes.isEmpty { return }
        text.family(
            "portcullis_upstream_tls_handshakes_total", .counter,
            "TLS handshakes with servers that were completed; resumed: without a signature.")
        appendWords(handshakes, "upstream", by: "kind", to: &text) { $0 }
    }
}
