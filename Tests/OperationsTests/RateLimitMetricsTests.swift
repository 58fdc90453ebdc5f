import Policy
import Proxy
import Testing

@testable import Operations

@Suite("Metrics of rate limits")
struct RateLimitMetricsTests {
    private let log: LogWriter

    init() throws {
        log = try LogWriter { _ in [] }
    }

    private func page(_ metrics: [LoopMetrics], _ status: RateLimitStatus = RateLimitStatus())
        throws
        -> MetricsParser
    {
        let page = MetricsPage(
            version: "1", loops: metrics, log: log, reloads: ReloadStatus(), keySets: { [] },
            rateLimits: { status })
        return try MetricsParser(page.render())
    }

    @Test("count what the limit of a route did, on every loop")
    func events() throws {
        let loops = [LoopMetrics(), LoopMetrics()]
        let record = RequestRecord.example()
        for metrics in loops {
            let recorder = WorkerRecorder(metrics: metrics, writer: log, events: EventRecorder())
            for limit in [[.rejected], [.wouldReject, .keyMissing], [.rejected], []] as [LimitNote]
            {
                record.limit = limit
                recorder.record(record, configuration: try exampleConfiguration())
            }
        }
        let page = try page(loops)
        let route = "everything-else"
        #expect(
            page["portcullis_rate_limited_total", ["route": route, "action": "reject"]] == 4)
        #expect(
            page["portcullis_rate_limited_total", ["route": route, "action": "would_reject"]] == 2)
        #expect(page["portcullis_rate_limit_key_missing_total", ["route": route]] == 2)
        #expect(page["portcullis_verifications_refused_total", [:]] == 0)
    }

    @Test("count tokens that were not verified, and do not take them for found in the cache")
    func verifications() throws {
        let metrics = LoopMetrics()
        let record = RequestRecord()
        record.verdict = .unavailable(.verificationLimit)
        WorkerRecorder(metrics: metrics, writer: log, events: EventRecorder())
            .record(record, configuration: try exampleConfiguration())
        let page = try page([metrics])
        #expect(page["portcullis_verifications_refused_total", [:]] == 1)
        #expect(page["portcullis_token_cache_lookups_total", ["result": "miss"]] == 1)
    }

    @Test("say how full the tables are")
    func tables() throws {
        let status = RateLimitStatus(
            routes: [("pay", .init(entries: 3, entryLimit: 1000, sharedCharges: 7))],
            verifications: .init(entries: 1, entryLimit: 2000, sharedCharges: 0))
        let page = try page([LoopMetrics()], status)
        let pay = ["limit": "route", "route": "pay"]
        let verifications = ["limit": "verifications", "route": ""]
        #expect(
            page["portcullis_rate_limited_total", ["route": "pay", "action": "reject"]] == 0)
        #expect(page["portcullis_rate_limit_entries", pay] == 3)
        #expect(page["portcullis_rate_limit_entries_limit", pay] == 1000)
        #expect(page["portcullis_rate_limit_shared_total", pay] == 7)
        #expect(page["portcullis_rate_limit_entries", verifications] == 1)
        #expect(page["portcullis_rate_limit_entries_limit", verifications] == 2000)
    }
}
