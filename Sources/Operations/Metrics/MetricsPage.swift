internal import HTTP
public import Proxy

/// The page at `/metrics`: the counters of all loops added up, and the state of the process.
///
/// Every label value is one of our own words or a name from the configuration, never text of a
/// request (pitfall M7).
public struct MetricsPage: Sendable {
    private let version: String
    let loops: [LoopMetrics]
    private let log: LogWriter
    private let reloads: ReloadStatus
    private let upgrades: UpgradeStatus
    private let keySets: @Sendable () -> [KeySetStatus]
    private let claimStore: @Sendable () -> ClaimStoreStatus?
    private let certificates: CertificateStatus
    private let upstreamHealth: @Sendable () -> UpstreamHealthStatus
    private let admin: AdminAccess
    private let drainStates: @Sendable () -> [ServerDrainState]
    private let memory: MemoryReport
    private let rateLimits: @Sendable () -> RateLimitStatus
    private let spans: SpanQueue

    /// Makes the page.
    ///
    /// - Parameters:
    ///   - version: The program's.
    ///   - loops: The counters of each event loop.
    ///   - keySets: What is known about the keys of each project; asked for each page.
    ///   - claimStore: What is known about the claim store; nil while none is open.
    ///   - certificates: Those that are shown to clients.
    ///   - upstreamHealth: What the checks of upstream servers know; asked for each page.
    ///   - admin: How requests for changes ended.
    ///   - drainStates: Which servers operators took out of service; asked for each page.
    ///   - memory: What is known about the memory of the process.
    ///   - rateLimits: What the tables of rate limits hold; asked for each page.
    ///   - spans: The spans that wait.
    public init(
        version: String, loops: [LoopMetrics], log: LogWriter, reloads: ReloadStatus,
        upgrades: UpgradeStatus = UpgradeStatus(),
        keySets: @escaping @Sendable () -> [KeySetStatus],
        claimStore: @escaping @Sendable () -> ClaimStoreStatus? = { nil },
        certificates: CertificateStatus = CertificateStatus(),
        upstreamHealth: @escaping @Sendable () -> UpstreamHealthStatus = { UpstreamHealthStatus() },
        admin: AdminAccess = AdminAccess(),
        drainStates: @escaping @Sendable () -> [ServerDrainState] = { [] },
        memory: MemoryReport = MemoryReport(),
        rateLimits: @escaping @Sendable () -> RateLimitStatus = { RateLimitStatus() },
        spans: SpanQueue = SpanQueue()
    ) {
        self.spans = spans
        self.version = version
        self.loops = loops
        self.log = log
        self.reloads = reloads
        self.upgrades = upgrades
        self.keySets = keySets
        self.claimStore = claimStore
        self.certificates = certificates
        self.upstreamHealth = upstreamHealth
        self.admin = admin
        self.drainStates = drainStates
        self.memory = memory
        self.rateLimits = rateLimits
    }

    /// The page as it is now.
    public func render() -> [UInt8] {
        var text = MetricsText()
        let routes = merged(loops.map(\.allRoutes))
        appendRequests(routes, to: &text)
        appendRoutes(routes, to: &text)
        appendUpstreams(upstreamHealth(), to: &text)
        appendAdmin(admin, drainStates(), to: &text)
        appendFailures(to: &text)
        appendRateLimits(rateLimits(), to: &text)
        appendConnections(to: &text)
        appendLimits(memory.status, merged(loops.map(\.allListeners)), to: &text)
        appendForwarding(merged(loops.map(\.allListeners)), to: &text)
        appendTracing(spans, to: &text)
        appendTLS(certificates, merged(loops.map(\.allListeners)), to: &text)
        appendKeySets(to: &text)
        appendClaims(claimStore(), to: &text)
        appendProgram(to: &text)
        ProcessStatistics.append(to: &text)
        return text.bytes
    }

    // MARK: Requests

    private func appendRequests(
        _ routes: [(name: String, values: [RouteTotals])], to text: inout MetricsText
    ) {
        text.family(
            "portcullis_requests_total", .counter,
            "Requests by route, app, verdict, reason and action, however they ended.")
        for route in routes {
            for app in merged(route.values.map(\.requests)) {
                for (row, words) in VerdictLabels.rows.enumerated() {
                    for (column, action) in VerdictLabels.columns.enumerated() {
                        let total = sum(app.values) { $0.total(row: row, column: column) }
                        // A series for each cell that was never used would be thousands.
                        if total == 0 { continue }
                        text.sample(
                            [
                                ("route", route.name), ("app", app.name),
                                ("verdict", words.verdict), ("reason", words.reason),
                                ("action", action),
                            ], total)
                    }
                }
            }
        }
    }

    private func appendRoutes(
        _ routes: [(name: String, values: [RouteTotals])], to text: inout MetricsText
    ) {
        text.family(
            "portcullis_request_duration_seconds", .histogram,
            "From the first byte of a request to the end of its answer.")
        for route in routes {
            text.samples([("route", route.name)], sum(route.values.map(\.duration)))
        }
        text.family(
            "portcullis_responses_total", .counter,
            "Requests by the class of the status that was sent; none: no answer was sent.")
        let classes = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"]
        for route in routes {
            for (index, name) in classes.enumerated() {
                let total = sum(route.values) { $0.responses[index] }
                if total > 0 { text.sample([("route", route.name), ("class", name)], total) }
            }
        }
        text.family(
            "portcullis_request_bytes_total", .counter, "Bytes of request bodies received.")
        for route in routes {
            text.sample([("route", route.name)], sum(route.values) { $0.bytesIn })
        }
        text.family(
            "portcullis_response_bytes_total", .counter, "Bytes of response bodies sent.")
        for route in routes {
            text.sample([("route", route.name)], sum(route.values) { $0.bytesOut })
        }
        text.family(
            "portcullis_share_key_missing_total", .counter,
            "Requests without the key that sticky_by names; they are outside the enforced share.")
        for route in routes {
            text.sample([("route", route.name)], sum(route.values) { $0.shareKeyMissing })
        }
    }

    private func appendFailures(to text: inout MetricsText) {
        text.family(
            "portcullis_request_failures_total", .counter,
            "Requests that ended without a complete answer from an upstream or from policy.")
        for failure in RequestFailure.allCases {
            text.sample(
                [("failure", failure.rawValue)], sum(loops) { $0.failures.total(failure) })
        }
        text.family(
            "portcullis_malformed_requests_total", .counter,
            "Requests that were refused because they were not proper HTTP.")
        for kind in MalformedMessage.Kind.allCases {
            text.sample([("kind", kind.rawValue)], sum(loops) { $0.malformed.total(kind) })
        }
        text.family(
            "portcullis_token_cache_lookups_total", .counter,
            "Tokens that were looked up among the verified ones.")
        text.sample([("result", "hit")], sum(loops) { $0.cacheHits.total })
        text.sample([("result", "miss")], sum(loops) { $0.cacheMisses.total })
        text.family(
            "portcullis_debug_secrets_total", .counter,
            "Requests with a Firebase debug secret in place of a token.")
        text.sample([], sum(loops) { $0.debugSecrets.total })
    }

    private func appendConnections(to text: inout MetricsText) {
        let listeners = merged(loops.map(\.allListeners))
        text.family(
            "portcullis_connections", .gauge,
            "Open client connections; active: with a request on the way.")
        for listener in listeners {
            let active = listener.values.reduce(0) { $0 &+ $1.active.level }
            let idle = listener.values.reduce(0) { $0 &+ $1.idle.level }
            let label = ("listener", listener.name)
            text.sample([label, ("state", "active")], UInt64(clamping: active))
            text.sample([label, ("state", "idle")], UInt64(clamping: idle))
        }
        text.family(
            "portcullis_connections_accepted_total", .counter, "Client connections accepted.")
        for listener in listeners {
            text.sample([("listener", listener.name)], sum(listener.values) { $0.accepted.total })
        }
    }

    // MARK: State

    private func appendKeySets(to text: inout MetricsText) {
        let keySets = keySets()
        text.family(
            "portcullis_jwks_age_seconds", .gauge,
            "Age of the keys in use; no sample: there never were any.")
        for keys in keySets {
            guard let age = keys.ageSeconds, age.isFinite else { continue }
            text.sample([("project", keys.project)], measured: age)
        }
        text.family("portcullis_jwks_keys", .gauge, "Keys in use.")
        for keys in keySets {
            text.sample([("project", keys.project)], UInt64(clamping: keys.keyCount))
        }
        text.family(
            "portcullis_jwks_skipped_keys", .gauge,
            "Entries of the key set in use that were skipped.")
        for keys in keySets {
            text.sample([("project", keys.project)], UInt64(clamping: keys.skippedCount))
        }
        text.family("portcullis_jwks_refreshes_total", .counter, "Attempts to get the keys.")
        for keys in keySets {
            for (result, count) in keys.refreshes {
                text.sample([("project", keys.project), ("result", result.rawValue)], count)
            }
        }
    }

    private func appendProgram(to text: inout MetricsText) {
        text.family("portcullis_build_info", .gauge, "Always 1; the version is the label.")
        text.sample([("version", version)], 1)
        text.family(
            "portcullis_config_reloads_total", .counter, "Reloads of the configuration.")
        text.sample([("result", "success")], reloads.succeeded)
        text.sample([("result", "failure")], reloads.failed)
        text.family(
            "portcullis_config_last_reload_successful", .gauge,
            "Whether the configuration file, when it was last read, is the one that serves.")
        text.sample([], reloads.isLastSuccessful ? 1 : 0)
        appendUpgrades(upgrades.counts, to: &text)
        text.family(
            "portcullis_log_lines_dropped_total", .counter,
            "Log lines lost because the reader of the log was too slow or failed.")
        text.sample([], log.droppedLines)
        text.family(
            "portcullis_log_write_errors_total", .counter, "Writes of the log that failed.")
        text.sample([], log.writeErrors)
    }

    // MARK: Adding up

    /// The values of all loops by name, in the order of the names.
    func merged<Value>(
        _ values: [[String: Value]]
    ) -> [(name: String, values: [Value])] {
        var byName: [String: [Value]] = [:]
        for values in values {
            for (name, value) in values { byName[name, default: []].append(value) }
        }
        return byName.sorted { $0.key < $1.key }.map { (name: $0.key, values: $0.value) }
    }

    /// Appends a sample for each word of each owner: a listener, or an upstream.
    ///
    /// - Parameters:
    ///   - owner: The label that the owner's name gets.
    ///   - label: The label that the word gets.
    ///   - counters: Those of the family, among what is counted for an owner in one loop.
    func appendWords<Value, Word>(
        _ owners: [(name: String, values: [Value])], _ owner: String, by label: String,
        to text: inout MetricsText, _ counters: (Value) -> WordCounters<Word>
    ) {
        for (name, values) in owners {
            let counters = values.map(counters)
            for word in Word.allCases {
                text.sample(
                    [(owner, name), (label, word.rawValue)], sum(counters) { $0.total(word) })
            }
        }
    }

    func sum<Value>(_ values: [Value], _ total: (Value) -> UInt64) -> UInt64 {
        values.reduce(0) { $0 &+ total($1) }
    }

    func sum(_ histograms: [HistogramTotals]) -> HistogramTotals {
        var totals = HistogramTotals(scale: histograms.first?.scale ?? .requests)
        for histogram in histograms { totals.add(histogram) }
        return totals
    }
}
