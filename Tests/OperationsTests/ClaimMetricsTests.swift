import Configuration
import Proxy
import Reactor
import Replay
import Testing

@testable import Operations

/// A store that only has numbers.
private struct NumberedStore: ClaimStore {
    var statistics = StoreStatistics()
    var name: StaticString { "redis" }
    var needsToken: Bool { false }
    var isRemote: Bool { true }
    var reliableSince: Int64 { 0 }

    func makeSession(on loop: EventLoop) -> any ClaimSession { preconditionFailure("not asked") }
    func purge(at now: ClaimInstant) -> Bool { false }
}

@Suite("Metrics of replay protection")
struct ClaimMetricsTests {
    private func page(_ loops: [LoopMetrics], _ statistics: StoreStatistics?) throws
        -> MetricsParser
    {
        let store = statistics.map { ClaimStoreStatus(NumberedStore(statistics: $0)) }
        let page = MetricsPage(
            version: "1", loops: loops, log: try LogWriter { _ in [] }, reloads: ReloadStatus(),
            keySets: { [] }, claimStore: { store })
        return try MetricsParser(page.render())
    }

    @Test("count what became of claims, a released one under both its words")
    func results() throws {
        let metrics = LoopMetrics()
        let recorder = WorkerRecorder(
            metrics: metrics, writer: try LogWriter { _ in [] }, events: EventRecorder())
        let configuration = try exampleConfiguration()
        let record = RequestRecord.example()
        recorder.record(record, configuration: configuration)
        for claim in [ClaimResult.claimed, .claimed, .reused, .unavailable] {
            record.claim = claim
            recorder.record(record, configuration: configuration)
        }
        record.claim = .claimed
        record.isClaimReleased = true
        record.claimMicroseconds = 30
        recorder.record(record, configuration: configuration)

        let page = try page([metrics], StoreStatistics())
        let expected: [ClaimResult: Double] = [
            .claimed: 3, .reused: 1, .released: 1, .unavailable: 1,
        ]
        for result in ClaimResult.allCases {
            let labels = ["result": result.rawValue]
            #expect(page["portcullis_replay_claims_total", labels] == expected[result] ?? 0)
        }
        let name = "portcullis_replay_store_duration_seconds"
        let label = ["store": "redis"]
        #expect(page.kinds[name] == "histogram")
        #expect(page["\(name)_count", label] == 5)
        #expect(page["\(name)_bucket", ["store": "redis", "le": "0.000001"]] == 4)
        #expect(page["\(name)_bucket", ["store": "redis", "le": "0.00005"]] == 5)
        #expect(page["\(name)_sum", label] == 0.00003)
    }

    @Test("say what the store holds and may hold, and what its breaker does")
    func store() throws {
        let page = try page(
            [],
            StoreStatistics(
                entries: 3, entryLimit: 10, bytes: 240, byteLimit: 800, breaker: .halfOpen))
        #expect(page["portcullis_replay_entries", [:]] == 3)
        #expect(page["portcullis_replay_entries_limit", [:]] == 10)
        #expect(page["portcullis_replay_bytes", [:]] == 240)
        #expect(page["portcullis_replay_bytes_limit", [:]] == 800)
        for (state, value) in [("closed", 0), ("half_open", 1), ("open", 0)] as [(String, Double)] {
            #expect(page["portcullis_replay_breaker_state", ["state": state]] == value)
        }
    }

    @Test(
        "leave out what nobody here knows: no store, or one far away",
        arguments: [nil, StoreStatistics()])
    func unknown(_ statistics: StoreStatistics?) throws {
        let page = try page([LoopMetrics()], statistics)
        #expect(page.kinds["portcullis_replay_claims_total"] == "counter")
        #expect(page.kinds["portcullis_replay_entries"] == "gauge")
        #expect(page["portcullis_replay_entries", [:]] == (statistics == nil ? 0 : nil))
        #expect(page.kinds["portcullis_replay_entries_limit"] == nil)
        #expect(page.kinds["portcullis_replay_breaker_state"] == nil)
    }

    @Test("the access log has the claim, why it failed, and how long it took")
    func line() throws {
        let record = RequestRecord()
        record.claim = .unavailable
        record.claimFailure = .breakerOpen
        record.claimMicroseconds = 12
        var formatter = AccessLine()
        let names = ConfigurationNames(try exampleConfiguration())
        var fields = try parse(render { formatter.append(record, names: names, to: &$0) })
        #expect(fields["claim"] == .text("unavailable"))
        #expect(fields["claim_failure"] == .text("breaker_open"))
        #expect(fields["claim_us"] == .number(12))

        record.claim = .claimed
        record.claimFailure = nil
        record.isClaimReleased = true
        fields = try parse(render { formatter.append(record, names: names, to: &$0) })
        #expect(fields["claim"] == .text("released"))
        #expect(fields["claim_failure"] == nil)
    }
}
