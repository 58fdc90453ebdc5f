/// What connections, bodies and memory may cost.
extension ConfigurationLoader {
    /// The keys of `limits` that are about connections, URLs and rates.
    func readCostLimits(_ table: TableReader, into limits: inout ListenerLimits) {
        if let bytes = table.setting("url")?.size(in: 64...1 << 20) {
            limits.url = Int(clamping: bytes)
        }
        // In each of these, 0 would be a listener that serves nobody: leaving the key out is "any".
        let counts = 1...10_000_000
        if let count = table.setting("connections")?.integer(in: counts) {
            limits.connections = count
        }
        if let count = table.setting("connections_per_network")?.integer(in: counts) {
            limits.connectionsPerNetwork = count
        }
        if let count = table.setting("requests_per_connection")?.integer(in: 1...1_000_000_000) {
            limits.requestsPerConnection = count
        }
        if let count = table.setting("pipelined")?.integer(in: 1...200) {
            limits.pipelined = count
        }
        if let rate = table.setting("body_rate")?.size(in: 0...1 << 30) { limits.bodyRate = rate }
        if let rate = table.setting("answer_rate")?.size(in: 0...1 << 30) {
            limits.answerRate = rate
        }
        let grace = table.setting("rate_grace")?
            .duration(in: .milliseconds(100) ... .hours(1))
        if let grace { limits.rateGrace = grace }
        warnOfLongURL(table, limits)
    }

    private func warnOfLongURL(_ table: TableReader, _ limits: ListenerLimits) {
        guard limits.url >= limits.headerBytes, let setting = table.setting("url") else { return }
        setting.warning(
            "is no less than \"header_bytes\", which ends such a request first",
            hint: "a URL is part of the head; raise \"header_bytes\" as well")
    }

    /// `memory_limit`: "auto", "off" or a size.
    func readMemoryLimit(_ setting: Setting, into server: inout Server) {
        switch setting.node.string {
        case "auto": server.memoryLimit = .auto
        case "off": server.memoryLimit = .off
        case let text? where SizeText.parse(text) == nil:
            setting.error(
                "must be \"auto\", \"off\" or a size, not \(quoted(text))",
                suggestion: SizeText.binarySpelling(of: text))
        default:
            guard let bytes = setting.size(in: 32 << 20...1 << 50) else { return }
            server.memoryLimit = .bytes(bytes)
            warnOfTightMemory(setting, bytes, server)
        }
    }

    /// Caches that fill the memory make the proxy shed load for ever.
    private func warnOfTightMemory(_ setting: Setting, _ bytes: UInt64, _ server: Server) {
        let caches = UInt64(server.tokenCacheBytes) * UInt64(max(1, server.workers))
        if caches < bytes / 2 { return }
        let each = SizeText.format(UInt64(server.tokenCacheBytes))
        setting.warning(
            "leaves little beside the caches: \(SizeText.format(bytes))",
            hint: "\"token_cache\" is \(each) for each event loop")
    }
}
