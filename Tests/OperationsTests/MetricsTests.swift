import Attestation
import Configuration
import HTTP
import Policy
import Proxy
import Reactor
import Synchronization
import TestKit
import Testing

@testable import Operations

/// Keeps what was logged.
final class EventRecorder: EventLog {
    private let lines = Mutex<[String]>([])

    func log(_ level: Log.Level, _ message: String, _ fields: [(name: String, value: String)]) {
        let values = fields.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
        lines.withLock { $0.append("\(level.rawValue): \(message) \(values)") }
    }

    var all: [String] { lines.withLock { $0 } }
}

private final class Flag: Sendable {
    let value = Atomic<Bool>(false)
}

@Suite("Metrics")
struct MetricsTests {
    private let log: LogWriter
    private let reloads = ReloadStatus()
    private let events = EventRecorder()

    init() throws {
        log = try LogWriter { _ in [] }
    }

    private func page(
        _ loops: [LoopMetrics], keySets: @escaping @Sendable () -> [KeySetStatus] = { [] }
    ) throws -> MetricsParser {
        let page = MetricsPage(
            version: "1.2.3", loops: loops, log: log, reloads: reloads, keySets: keySets)
        return try MetricsParser(page.render())
    }

    private func recorder(_ metrics: LoopMetrics) -> WorkerRecorder {
        WorkerRecorder(metrics: metrics, writer: log, events: events)
    }

    @Test("are proper from the first moment on, and tell about the process")
    func emptyPage() throws {
        let page = try page([LoopMetrics()])
        #expect(page["portcullis_build_info", ["version": "1.2.3"]] == 1)
        #expect(page.kinds["portcullis_requests_total"] == "counter")
        #expect(page.kinds["portcullis_request_duration_seconds"] == "histogram")
        #expect(try #require(page["process_resident_memory_bytes", [:]]) > 1_000_000)
        #expect(try #require(page["process_open_fds", [:]]) >= 3)
        #expect(try #require(page["process_cpu_seconds_total", [:]]) > 0)
        let now = Double(Syscalls.wallMicroseconds()) / 1e6
        let started = try #require(page["process_start_time_seconds", [:]])
        #expect(started > now - 86_400 && started <= now + 1)
    }

    @Test("have a sample for each listener and word, of all loops together")
    func words() throws {
        let loops = [LoopMetrics(), LoopMetrics()]
        for loop in loops {
            for name in ["a:80", "b:80"] { loop.listener(name).limits.count(.url) }
            loop.listener("b:80").http2Failures.count(.flood)
            loop.listener("b:80").proxyHeaders.count(.client)
            loop.upstreamEvents("api").count(.ejected)
            loop.upstreamHandshakes("api").count(.resumed)
        }
        let page = try page(loops)
        let hits = "portcullis_limit_hits_total"
        for name in ["a:80", "b:80"] {
            for limit in Limit.allCases {
                let labels = ["listener": name, "limit": limit.rawValue]
                #expect(page[hits, labels] == (limit == .url ? 2 : 0))
            }
        }
        let failures = "portcullis_http2_failures_total"
        #expect(page[failures, ["listener": "b:80", "kind": "h2_flood"]] == 2)
        #expect(page[failures, ["listener": "a:80", "kind": "h2_flood"]] == 0)
        let headers = "portcullis_proxy_headers_total"
        #expect(page[headers, ["listener": "b:80", "result": "client"]] == 2)
        #expect(page[headers, ["listener": "a:80", "result": "client"]] == nil)
        let events = "portcullis_upstream_events_total"
        #expect(page[events, ["upstream": "api", "event": "ejected"]] == 2)
        #expect(page[events, ["upstream": "api", "event": "panic"]] == 0)
        let handshakes = "portcullis_upstream_tls_handshakes_total"
        #expect(page[handshakes, ["upstream": "api", "kind": "resumed"]] == 2)
        #expect(page[handshakes, ["upstream": "api", "kind": "full"]] == 0)
    }

    @Test("count a request under route, app, verdict, reason and action")
    func request() throws {
        let metrics = LoopMetrics()
        recorder(metrics).record(.example(), configuration: try exampleConfiguration())
        let page = try page([metrics])
        let route = ["route": "everything-else"]
        #expect(
            page[
                "portcullis_requests_total",
                [
                    "route": "everything-else", "app": "web", "verdict": "invalid",
                    "reason": "expired", "action": "would_reject",
                ]] == 1)
        #expect(page.sum("portcullis_requests_total") == 1)
        #expect(page["portcullis_request_duration_seconds_count", route] == 1)
        #expect(page["portcullis_request_duration_seconds_sum", route] == 0.0025)
        let bucket = "portcullis_request_duration_seconds_bucket"
        #expect(page[bucket, ["route": "everything-else", "le": "0.001"]] == 0)
        #expect(page[bucket, ["route": "everything-else", "le": "0.0025"]] == 1)
        #expect(page["portcullis_upstream_duration_seconds_sum", ["upstream": "legacy"]] == 0.0021)
        #expect(
            page["portcullis_responses_total", ["route": "everything-else", "class": "2xx"]] == 1)
        #expect(page["portcullis_request_bytes_total", route] == 12)
        #expect(page["portcullis_response_bytes_total", route] == 34_567)
        #expect(page["portcullis_share_key_missing_total", route] == 1)
        #expect(page["portcullis_request_failures_total", ["failure": "upstream_reset"]] == 1)
        #expect(page["portcullis_malformed_requests_total", ["kind": "chunk"]] == 1)
        #expect(page["portcullis_token_cache_lookups_total", ["result": "hit"]] == 1)
        #expect(page["portcullis_token_cache_lookups_total", ["result": "miss"]] == 0)
        #expect(page["portcullis_debug_secrets_total", [:]] == 1)
    }

    static let verdicts: [Verdict] =
        [.verified, .attestationFailed, .appNotAllowed, .notLimitedUse, .reused, .exempt]
        + MissingReason.allCases.map { .missing($0) } + InvalidReason.allCases.map { .invalid($0) }
        + UnavailableReason.allCases.map { .unavailable($0) }

    @Test("have a place of its own for each verdict and action", arguments: verdicts)
    func vocabulary(_ verdict: Verdict) throws {
        let row = VerdictLabels.row(of: verdict)
        #expect(VerdictLabels.rows[row].verdict == "\(verdict.word)")
        #expect(VerdictLabels.rows[row].reason == verdict.reason ?? "")
        for action in Action.allCases {
            #expect(VerdictLabels.columns[VerdictLabels.column(of: action)] == action.rawValue)
        }
        #expect(VerdictLabels.rows.count == 24)
        #expect(RequestFailure.allCases.count <= WordCounters<RequestFailure>.capacity)
        #expect(
            MalformedMessage.Kind.allCases.count <= WordCounters<MalformedMessage.Kind>.capacity)
        #expect(ClaimResult.allCases.count <= WordCounters<ClaimResult>.capacity)
        #expect(UpstreamEvent.allCases.count <= WordCounters<UpstreamEvent>.capacity)
    }

    @Test(
        "count a token that was not in the cache as a miss, whatever came of it behind that",
        arguments: [
            (Verdict.verified, 1), (.reused, 1), (.unavailable(.replayStore), 1),
            (.missing(.unknownOrigin), 0), (.exempt, 0),
        ])
    func cacheMisses(_ verdict: Verdict, _ misses: Double) throws {
        let metrics = LoopMetrics()
        let record = RequestRecord()
        record.verdict = verdict
        recorder(metrics).record(record, configuration: try exampleConfiguration())
        let page = try page([metrics])
        #expect(page["portcullis_token_cache_lookups_total", ["result": "miss"]] == misses)
    }

    @Test("M7: take labels from the configuration only, whatever a client sends")
    func labels() throws {
        var generator = SeededGenerator(seed: 4)
        let metrics = LoopMetrics()
        let recorder = recorder(metrics)
        let configuration = try exampleConfiguration()
        let record = RequestRecord()
        for _ in 0..<1000 {
            record.reset()
            record.fillWithAwkwardBytes(&generator, most: 60)
            record.userAgent += Array(exampleToken.utf8)
            record.route = Int.random(in: -1...4, using: &generator)
            record.token = Bool.random(using: &generator) ? exampleClaims : nil
            record.app = AppIndex(
                project: .random(in: -1...3, using: &generator),
                app: .random(in: -1...3, using: &generator))
            record.verdict = Self.verdicts.randomElement(using: &generator)
            record.action = Action.allCases.randomElement(using: &generator)
            record.status = .random(in: 0...UInt16.max, using: &generator)
            record.upstream = .random(in: -1...3, using: &generator)
            record.upstreamMicroseconds = .random(in: .min ... .max, using: &generator)
            record.totalMicroseconds = .random(in: .min ... .max, using: &generator)
            record.bytesIn = .random(in: 0...1_000_000, using: &generator)
            recorder.record(record, configuration: configuration)
        }
        let page = try page([metrics])
        #expect(page.sum("portcullis_requests_total") == 1000)
        let allowed: [String: Set<String>] = [
            "route": ["transfers", "everything-else", "odd \"name\"\\\n", "none"],
            "app": ["ios", "android", "web", "other"],
            "verdict": Set(VerdictLabels.rows.map(\.verdict)),
            "reason": Set(VerdictLabels.rows.map(\.reason)),
            "action": Set(VerdictLabels.columns),
            "class": ["none", "1xx", "2xx", "3xx", "4xx", "5xx"],
            "upstream": ["api", "legacy"],
            "event": Set(UpstreamEvent.allCases.map(\.rawValue)),
            "failure": Set(RequestFailure.allCases.map(\.rawValue)),
            "kind": Set(MalformedMessage.Kind.allCases.map(\.rawValue)),
            "result": Set(
                ["hit", "miss", "success", "failure", "exported", "failed", "dropped"]
                    + ClaimResult.allCases.map(\.rawValue)
                    + AdminAccess.Outcome.allCases.map(\.rawValue)),
            "version": ["1.2.3"],
            "le": Set(Histogram.Scale.requests.bounds.map(\.label) + ["+Inf"]),
        ]
        for sample in page.samples.keys {
            for (name, value) in sample.labels {
                #expect(allowed[name]?.contains(value) == true, "\(name)=\(value)")
            }
        }
    }

    @Test(
        "M7: call every app without an alias `other`",
        arguments: [nil, AppIndex(project: 0, app: 2), AppIndex(project: 2, app: 0)])
    func otherApp(_ app: AppIndex?) throws {
        let metrics = LoopMetrics()
        let record = RequestRecord.example()
        record.app = app
        recorder(metrics).record(record, configuration: try exampleConfiguration())
        let page = try page([metrics])
        #expect(
            page[
                "portcullis_requests_total",
                [
                    "route": "everything-else", "app": "other", "verdict": "invalid",
                    "reason": "expired", "action": "would_reject",
                ]] == 1)
    }

    @Test("add up to the records of all loops, and can be read at any moment")
    func manyLoops() async throws {
        let loops = (0..<4).map { _ in LoopMetrics() }
        let configuration = try exampleConfiguration()
        let perLoop = 5000
        let isDone = Flag()
        try await withThrowingTaskGroup { group in
            group.addTask {
                var last = 0.0
                while !isDone.value.load(ordering: .relaxed) {
                    let total = try self.page(loops).sum("portcullis_requests_total")
                    #expect(total >= last)
                    last = total
                    await Task.yield()
                }
            }
            try await withThrowingTaskGroup { writers in
                for (index, loop) in loops.enumerated() {
                    writers.addTask {
                        let recorder = recorder(loop)
                        let record = RequestRecord.example()
                        for number in 0..<perLoop {
                            record.route = (number + index) % 3
                            record.isDebugSecret = false
                            record.token = number % 2 == 0 ? exampleClaims : nil
                            recorder.record(record, configuration: configuration)
                            recorder.flush()
                        }
                    }
                }
                try await writers.waitForAll()
            }
            isDone.value.store(true, ordering: .relaxed)
            try await group.waitForAll()
        }
        let page = try page(loops)
        let total = Double(4 * perLoop)
        #expect(page.sum("portcullis_requests_total") == total)
        #expect(page.sum("portcullis_request_duration_seconds_count") == total)
        #expect(page.sum("portcullis_response_bytes_total") == total * 34_567)
        #expect(page["portcullis_request_failures_total", ["failure": "upstream_reset"]] == total)
        #expect(page["portcullis_upstream_duration_seconds_count", ["upstream": "legacy"]] == total)
    }

    @Test("go on over a reload, by the names of routes")
    func reload() throws {
        let metrics = LoopMetrics()
        let recorder = recorder(metrics)
        let old = try exampleConfiguration()
        var new = old
        new.routes = try RouteTable([
            Route(name: "new", path: "/new", upstream: 0),
            Route(name: "transfers", path: "/v1/transfers", upstream: 0),
        ])
        let record = RequestRecord()
        record.route = 0
        recorder.record(record, configuration: old)
        record.route = 1
        recorder.record(record, configuration: new)
        // A request that the old configuration still serves.
        record.route = 0
        recorder.record(record, configuration: old)
        recorder.record(record, configuration: new)
        let page = try page([metrics])
        let name = "portcullis_request_duration_seconds_count"
        #expect(page[name, ["route": "transfers"]] == 3)
        #expect(page[name, ["route": "new"]] == 1)
    }

    @Test("count connections by listener and state")
    func connections() throws {
        let metrics = [LoopMetrics(), LoopMetrics()]
        let recorders = metrics.map(recorder)
        for recorder in recorders {
            for _ in 0..<3 { recorder.connection(.opened, listener: "a:1") }
            recorder.connection(.becameActive, listener: "a:1")
            recorder.connection(.becameActive, listener: "a:1")
            recorder.connection(.becameIdle, listener: "a:1")
            recorder.connection(.closed(wasActive: false), listener: "a:1")
        }
        recorders[0].connection(.opened, listener: "unix:/run/b")
        recorders[0].connection(.closed(wasActive: false), listener: "unix:/run/b")
        let page = try page(metrics)
        let name = "portcullis_connections"
        #expect(page[name, ["listener": "a:1", "state": "active"]] == 2)
        #expect(page[name, ["listener": "a:1", "state": "idle"]] == 2)
        #expect(page[name, ["listener": "unix:/run/b", "state": "idle"]] == 0)
        #expect(page["portcullis_connections_accepted_total", ["listener": "a:1"]] == 6)
    }

    @Test("tell about key sets and reloads")
    func state() throws {
        reloads.ended(succeeded: true)
        reloads.ended(succeeded: false)
        let page = try page([]) {
            [
                KeySetStatus(
                    project: "production", isUsable: true, ageSeconds: 12.5, keyCount: 4,
                    skippedCount: 1, refreshes: [(.success, 7), (.tls, 2)], lastError: nil),
                KeySetStatus(
                    project: "new", isUsable: false, ageSeconds: nil, keyCount: 0, skippedCount: 0,
                    refreshes: [(.success, 0), (.tls, 1)], lastError: "no"),
            ]
        }
        #expect(page["portcullis_jwks_age_seconds", ["project": "production"]] == 12.5)
        #expect(page["portcullis_jwks_age_seconds", ["project": "new"]] == nil)
        #expect(page["portcullis_jwks_keys", ["project": "production"]] == 4)
        #expect(page["portcullis_jwks_skipped_keys", ["project": "production"]] == 1)
        let refreshes = "portcullis_jwks_refreshes_total"
        #expect(page[refreshes, ["project": "production", "result": "tls"]] == 2)
        #expect(page["portcullis_config_reloads_total", ["result": "success"]] == 1)
        #expect(page["portcullis_config_reloads_total", ["result": "failure"]] == 1)
        #expect(page["portcullis_config_last_reload_successful", [:]] == 0)
        reloads.ended(succeeded: true)
        #expect(try self.page([])["portcullis_config_last_reload_successful", [:]] == 1)
    }

    @Test(
        "put each duration into the first bucket whose bound it does not exceed",
        arguments: Histogram.Scale.allCases, 0..<15)
    func buckets(_ scale: Histogram.Scale, _ index: Int) {
        let bound = scale.bounds[index]
        #expect(Double(bound.label) == Double(bound.microseconds) / 1e6)
        let histogram = Histogram(scale)
        histogram.record(microseconds: bound.microseconds)
        histogram.record(microseconds: bound.microseconds + 1)
        #expect(histogram.totals.counts[index] == 1)
        #expect(histogram.totals.counts[index + 1] == 1)
        #expect(histogram.totals.microseconds == UInt64(2 * bound.microseconds + 1))
    }

    @Test("O5: explain a debug secret without it, once in ten seconds, and say how many more")
    func debugSecret() throws {
        let recorder = recorder(LoopMetrics())
        let configuration = try exampleConfiguration()
        let record = RequestRecord.example()
        for second in [0, 1, 9, 10, 11] {
            record.startedAt = 1_796_019_227_000_000 + Int64(second) * 1_000_000
            recorder.record(record, configuration: configuration)
        }
        // The clock was set back.
        record.startedAt = 1
        recorder.record(record, configuration: configuration)
        let lines = events.all
        #expect(lines.count == 3)
        #expect(lines.allSatisfy { $0.contains("debug secret") && $0.hasPrefix("warning") })
        #expect(lines[0].hasSuffix("route=everything-else client=192.0.2.7 not_reported=0"))
        #expect(lines[1].hasSuffix("route=everything-else client=192.0.2.7 not_reported=2"))
        #expect(lines[2].hasSuffix("not_reported=1"))
    }

    @Test("read the process's own line in /proc whatever its name is")
    func procStat() {
        let line =
            "4242 (a) b (c) S 1 2 3 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 777 1000000 512 18"
        #expect(
            ProcessStatistics.parse(line)
                == .init(cpuTicks: 300, startTicks: 777, residentPages: 512))
        #expect(ProcessStatistics.parse("4242 (a) S 1 2") == nil)
        #expect(ProcessStatistics.parse("") == nil)
        #expect(ProcessStatistics.bootTime("cpu 1 2\nbtime 1796000000\nx 1\n") == 1_796_000_000)
        #expect(ProcessStatistics.bootTime("cpu 1 2\n") == nil)
    }
}
