/// Which servers of an upstream are used: `health`, `ejection`, and what both go by.
extension ConfigurationLoader {
    private static var intervals: ClosedRange<Duration> { .milliseconds(100) ... .hours(1) }

    /// Everything that says when a server is left alone.
    func readHealth(_ table: TableReader, into upstream: inout Upstream) {
        upstream.health = readCheck(table, upstream)
        if let setting = table.setting("panic_threshold"), let share = setting.percentage() {
            upstream.panicThreshold = share
        }
        if let time = table.setting("slow_start")?.duration(in: .zero ... .hours(1)) {
            upstream.slowStart = time
        }
        if let interval = table.setting("resolve_interval")?.duration(
            in: .seconds(1) ... .hours(24))
        {
            upstream.resolveInterval = interval
        }
        readEjection(table, into: &upstream)
    }

    private func readCheck(_ upstream: TableReader, _ settings: Upstream) -> HealthCheck? {
        guard let table = upstream.table("health", schema: .health) else { return nil }
        let path = table.required("path", hint: "such as path = \"/healthz\"")?
            .string(checkHealthPath)
        var check = HealthCheck(path: path ?? "/")
        check.host = table.setting("host")?.string(checkHost)
        if let interval = table.setting("interval")?.duration(in: Self.intervals) {
            check.interval = interval
        }
        check.timeout = min(check.timeout, check.interval)
        if let setting = table.setting("timeout"),
            let timeout = setting.duration(in: .milliseconds(10) ... .hours(1))
        {
            check.timeout = timeout
            if timeout > check.interval {
                setting.error(
                    "must not be longer than \"interval\", \(DurationText.format(check.interval))",
                    hint: "a server has one check at a time")
            }
        }
        if let count = table.setting("healthy_after")?.integer(in: 1...100) {
            check.healthyAfter = count
        }
        if let count = table.setting("unhealthy_after")?.integer(in: 1...100) {
            check.unhealthyAfter = count
        }
        if let setting = table.setting("status"), let range = setting.string(parseStatusRange) {
            check.status = range
        }
        if settings.serverProtocol.isMultiplexed { warnOfUnusedKeys(table, settings) }
        return path == nil ? nil : check
    }

    /// A check over HTTP/2 sends no request (docs/decisions/0061-health.md).
    private func warnOfUnusedKeys(_ table: TableReader, _ upstream: Upstream) {
        for key in ["status", "host"] {
            table.setting(key)?.hasNoEffect(
                because: "\"protocol\" is \"\(upstream.serverProtocol.rawValue)\": servers are "
                    + "asked for their SETTINGS", isSwitchedOff: true)
        }
    }

    private func readEjection(_ table: TableReader, into upstream: inout Upstream) {
        guard let table = table.table("ejection", schema: .ejection) else { return }
        if let count = table.setting("failures")?.integer(in: 0...10_000) {
            upstream.ejection.failures = count
        }
        upstream.ejection.errorShare = table.setting("error_share")?.percentage()
        let times: ClosedRange<Duration> = .milliseconds(100) ... .hours(24)
        if let time = table.setting("time")?.duration(in: times) {
            upstream.ejection.time = time
            upstream.ejection.longest = max(upstream.ejection.longest, time)
        }
        if let setting = table.setting("longest"), let longest = setting.duration(in: times) {
            upstream.ejection.longest = longest
            if longest < upstream.ejection.time {
                setting.error(
                    "must not be shorter than \"time\", "
                        + DurationText.format(upstream.ejection.time))
            }
        }
    }
}

private func checkHealthPath(_ text: String) throws(Misspelling) -> String {
    let isVisible = text.utf8.allSatisfy { 0x21...0x7E ~= $0 }
    if text.hasPrefix("/"), isVisible, !text.contains("#"), text.utf8.count <= 1024 { return text }
    throw Misspelling("is no path: \(quoted(text))", hint: "such as \"/healthz\"")
}

private func checkHost(_ text: String) throws(Misspelling) -> String {
    if let url = try? URLText("http://\(text)"), url.rest.isEmpty { return text }
    throw Misspelling("is no host: \(quoted(text))", hint: "such as \"api.internal\"")
}

private func parseStatusRange(_ text: String) throws(Misspelling) -> ClosedRange<UInt16> {
    let ends = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        .map { UInt16($0) }
    if let first = ends.first ?? nil, let last = ends.last ?? nil, first <= last,
        200...599 ~= first, 200...599 ~= last
    {
        return first...last
    }
    throw Misspelling(
        "is no range of statuses: \(quoted(text))", hint: "such as \"200-399\", or \"204\"")
}
