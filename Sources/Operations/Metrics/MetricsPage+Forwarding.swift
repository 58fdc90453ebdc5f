internal import Proxy

extension MetricsPage {
    /// What load balancers and proxies in front say about clients.
    func appendForwarding(
        _ listeners: [(name: String, values: [ListenerCounters])], to text: inout MetricsText
    ) {
        // Most listeners expect none.
        let expecting = listeners.filter { listener in
            ProxyHeaderResult.allCases.contains { result in
                sum(listener.values) { $0.proxyHeaders.total(result) } > 0
            }
        }
        if !expecting.isEmpty {
            text.family(
                "portcullis_proxy_headers_total", .counter,
                "Connections that a PROXY header was expected of, by what came. Only client, unknown "
                    + "and balancer were served.")
            appendWords(expecting, "listener", by: "result", to: &text) { $0.proxyHeaders }
        }
        text.family(
            "portcullis_forwarded_malformed_total", .counter,
            "Requests of trusted proxies whose Forwarded was not believed for its grammar.")
        text.sample([], sum(loops) { $0.malformedForwarded.total })
    }
}
