internal import Policy

/// `rate_limit` of a route, and `verifications` of `[server]`.
extension ConfigurationLoader {
    /// What of both is clients told apart: room for that many, and no more.
    private static let entries = 1_000...10_000_000
    private static let most = 1_000_000

    /// `rate_limit` of a route; nil when it is not there or not right.
    func readRateLimit(_ route: TableReader, appCheck mode: Route.Mode?) -> RateLimit? {
        guard let table = route.table("rate_limit", schema: .rateLimit) else { return nil }
        let requests = table.required("requests", hint: "such as requests = 100")?
            .integer(in: 1...Self.most)
        let per = table.required("per", hint: "such as per = \"1m\"")?
            .wholeSeconds(in: .seconds(1) ... .hours(24))
        let burst = table.setting("burst").map { $0.integer(in: 1...Self.most) }
        var limit = RateLimit(
            requests: requests ?? 1, seconds: Int(per?.components.seconds ?? 1),
            burst: burst ?? nil)
        if let setting = table.setting("key"), let key = setting.string(checkLimitKey) {
            limit.key = key
            if key == .app, mode == .off {
                setting.hasNoEffect(
                    because: "app_check is \"off\", so no app is known", isSwitchedOff: true,
                    hint: "\"client_network\" is known of every request")
            }
        }
        if let mode = table.setting("mode")?.choice(RateLimit.Mode.self) { limit.mode = mode }
        readNetworks(table, into: &limit.networks)
        if let count = table.setting("max_entries")?.integer(in: Self.entries) {
            limit.maxEntries = count
        }
        guard requests != nil, per != nil, burst != .some(nil) else { return nil }
        if limit.bucket == nil {
            let hint = "at most \(TokenBucket.longestFill / 86_400_000_000_000) days"
            (table.setting("burst") ?? table.setting("requests"))?.error(
                "would take too long to come back at this rate: \(limit.burst)", hint: hint)
            return nil
        }
        return limit
    }

    /// `verifications` of `[server]`, or its defaults.
    func readVerifications(_ server: TableReader) -> VerificationLimit {
        var limit = VerificationLimit()
        guard let table = server.table("verifications", schema: .verifications) else {
            return limit
        }
        if let count = table.setting("per_second")?.integer(in: 0...Self.most) {
            limit.perSecond = count
            limit.burst = min(count * 10, Self.most)
        }
        if let setting = table.setting("burst"), let burst = setting.integer(in: 1...Self.most) {
            limit.burst = burst
            if limit.perSecond == 0 {
                setting.hasNoEffect(
                    because: "\"per_second\" is 0, which is no limit", isSwitchedOff: true)
            }
        }
        readNetworks(table, into: &limit.networks)
        if let count = table.setting("max_entries")?.integer(in: Self.entries) {
            limit.maxEntries = count
        }
        return limit
    }

    private func readNetworks(_ table: TableReader, into networks: inout NetworkPrefixes) {
        if let bits = table.setting("ipv4_prefix")?.integer(in: 8...32) { networks.ipv4 = bits }
        if let bits = table.setting("ipv6_prefix")?.integer(in: 16...128) { networks.ipv6 = bits }
    }
}

private func checkLimitKey(_ text: String) throws(Misspelling) -> RateLimit.Key {
    if text == "client_network" { return .clientNetwork }
    let choices = ["client_network", "app", "header:NAME"]
    guard text == "app" || text.hasPrefix("header:") else {
        throw Misspelling(
            "must be \(alternatives(choices)), not \(quoted(text))",
            suggestion: text == "client_ip"
                ? "client_network" : nearest(to: text, among: choices.prefix(2)))
    }
    switch try checkStickyKey(text) {
    case .app: return .app
    case .field(let name): return .field(name)
    case .clientIP: return .clientNetwork
    }
}
