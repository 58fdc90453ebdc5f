/// `limits` of an upstream.
extension ConfigurationLoader {
    /// How much one server takes.
    func readLimits(_ table: TableReader, into upstream: inout Upstream) {
        guard let table = table.table("limits", schema: .upstreamLimits) else { return }
        let connections = table.required("connections", hint: "such as connections = 100")
        if let count = connections?.integer(in: 1...1_000_000) {
            upstream.limits.connections = count
        }
        if let count = table.setting("queue")?.integer(in: 0...100_000) {
            upstream.limits.queue = count
        }
        let times: ClosedRange<Duration> = .milliseconds(1) ... .minutes(10)
        if let time = table.setting("queue_timeout")?.duration(in: times) {
            upstream.limits.queueTimeout = time
        }
    }
}
