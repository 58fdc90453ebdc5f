internal import Proxy

/// What the page says of rate limits, and of the limit on verifications.
extension MetricsPage {
    /// Appends the families of limits. Tables are those of the configuration that serves now.
    func appendRateLimits(_ status: RateLimitStatus, to text: inout MetricsText) {
        appendEvents(limited: status.routes.map(\.name), to: &text)
        text.family(
            "portcullis_verifications_refused_total", .counter,
            "Tokens whose signature was not computed after too many bad ones from their network.")
        text.sample([], sum(loops) { $0.verificationsRefused.total })
        appendTables(status, to: &text)
    }

    /// - Parameter limited: Routes that have a limit, whether or not it did anything yet.
    private func appendEvents(limited: [String], to text: inout MetricsText) {
        let events = loops.map(\.allRateLimitEvents)
        let routes = Set(events.flatMap(\.keys)).union(limited).sorted()
        if routes.isEmpty { return }
        func total(_ route: String, _ event: RateLimitEvent) -> UInt64 {
            sum(events.compactMap { $0[route] }) { $0.total(event) }
        }
        text.family(
            "portcullis_rate_limited_total", .counter,
            "Requests beyond the rate limit of their route: refused (reject), or only counted.")
        for route in routes {
            for event in [RateLimitEvent.reject, .wouldReject] {
                text.sample([("route", route), ("action", event.rawValue)], total(route, event))
            }
        }
        text.family(
            "portcullis_rate_limit_key_missing_total", .counter,
            "Requests without what the limit of their route goes by; they count for their network.")
        for route in routes { text.sample([("route", route)], total(route, .keyMissing)) }
    }

    private func appendTables(_ status: RateLimitStatus, to text: inout MetricsText) {
        let routes = status.routes.map { ([("limit", "route"), ("route", $0.name)], $0.table) }
        let verifications = status.verifications.map {
            ([("limit", "verifications"), ("route", "")], $0)
        }
        let tables = routes + [verifications].compactMap(\.self)
        if tables.isEmpty { return }
        text.family(
            "portcullis_rate_limit_entries", .gauge,
            "Clients that a limit tells apart now: those that used some of it.")
        for (labels, table) in tables { text.sample(labels, UInt64(clamping: table.entries)) }
        text.family(
            "portcullis_rate_limit_entries_limit", .gauge,
            "Clients that a limit tells apart at most.")
        for (labels, table) in tables { text.sample(labels, UInt64(clamping: table.entryLimit)) }
        text.family(
            "portcullis_rate_limit_shared_total", .counter,
            "Charges of clients for whom there was no room: they share what one client may.")
        for (labels, table) in tables { text.sample(labels, table.sharedCharges) }
    }
}
