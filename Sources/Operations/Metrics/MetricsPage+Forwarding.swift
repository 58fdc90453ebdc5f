internal import Proxy

extension MetricsPage {
    /// What load balancers and proxies in front say about clients.
    func appendForwarding(
        _ listeners: [(name: String, values: [ListenerCounters])], to text: inout MetricsText
    ) {
        text.family(
            "portcullis_proxy_headers_total", .counter,
            "Connections that a PROXY header was expected of, by what came. Only client, unknown and "
                + "balancer were served.")
        for listener in listeners {
            let totals = ProxyHeaderResult.allCases.map { result in
                (result, sum(listener.values) { $0.proxyHeaders.total(result) })
            }
            // Most listeners expect none.
            guard totals.contains(where: { $0.1 > 0 }) else { continue }
            for (result, total) in totals {
                text.sample([("listener", listener.name), ("result", result.rawValue)], total)
            }
        }
        text.family(
            "portcullis_forwarded_malformed_total", .counter,
            "Requests of trusted proxies whose Forwarded was not believed for its grammar.")
        text.sample([], sum(loops) { $0.malformedForwarded.total })
    }
}
