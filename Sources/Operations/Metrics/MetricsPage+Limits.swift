internal import HTTP
internal import Proxy

/// What the page says of limits: who ran into them, and how much memory there is.
extension MetricsPage {
    /// Appends the families of limits.
    func appendLimits(
        _ memory: MemoryStatus, _ listeners: [(name: String, values: [ListenerCounters])],
        to text: inout MetricsText
    ) {
        text.family(
            "portcullis_limit_hits_total", .counter,
            "Requests and connections that were refused or ended by a limit, by its name.")
        appendWords(listeners, "listener", by: "limit", to: &text) { $0.limits }
        text.family(
            "portcullis_idle_connections_closed_total", .counter,
            "Idle client connections that were closed early, because their place was needed.")
        for listener in listeners {
            text.sample(
                [("listener", listener.name)], sum(listener.values) { $0.dismissed.total })
        }
        text.family(
            "portcullis_http2_failures_total", .counter,
            "HTTP/2 connections of clients that were ended for what they did.")
        appendWords(listeners, "listener", by: "kind", to: &text) { $0.http2Failures }
        text.family(
            "portcullis_memory_bytes", .gauge,
            "Memory that counts against memory_limit: the process's own pages and shared ones.")
        text.sample([], memory.used)
        text.family(
            "portcullis_memory_shedding", .gauge,
            "Whether requests and connections are refused for want of memory.")
        text.sample([], memory.isShedding ? 1 : 0)
        guard let limit = memory.limit else { return }
        text.family("portcullis_memory_limit_bytes", .gauge, "The limit; no sample: there is none.")
        text.sample([], limit)
    }
}
