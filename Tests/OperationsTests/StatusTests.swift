import Attestation
import Configuration
import Policy
import Proxy
import Reactor
import Testing

@testable import Operations

@Suite("Traffic of the last minutes")
struct TrafficHistoryTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    private func count(
        _ metrics: LoopMetrics, _ route: String, _ verdict: Verdict?, _ action: Action?,
        status: UInt16 = 200, app: String = "ios", times: Int = 1
    ) {
        for time in 0..<times {
            let outcome = RequestOutcome(
                route: metrics.route(route), app: metrics.app(app), verdict: verdict,
                action: action, status: status, microseconds: Int64(time) * 1000)
            metrics.count(outcome, microseconds: 1, bytesOut: 0)
        }
    }

    @Test("adds up loops that number their routes differently, and apps and durations of one route")
    func loops() {
        let (first, second) = (LoopMetrics(), LoopMetrics())
        _ = second.route("b")
        let history = TrafficHistory([first, second], now: start)
        count(first, "a", .verified, .allow, times: 3)
        count(first, "a", .verified, .allow, app: "android", times: 2)
        count(second, "a", .verified, .allow, times: 4)
        count(second, "b", .invalid(.expired), .reject, status: 401)
        count(first, "none", nil, nil, status: 404)
        first.failures.count(.noRoute)
        let report = history.report(at: start.advanced(by: .seconds(10)))
        #expect(report.windows.map(\.requests) == [11, 11, 11])
        #expect(report.windows.map(\.seconds) == [10, 10, 10])
        #expect(report.windows[0].perSecond == 1.1 && report.windows[0].rejected == 1)
        #expect(
            report.verdicts.first
                == .init(route: "a", verdict: "verified", action: "allow", requests: .init(9, 9, 9))
        )
        #expect(report.verdicts.count == 3)
        #expect(
            report.reasons
                == [
                    .init(
                        verdict: "invalid", reason: "expired", action: "reject",
                        requests: .init(1, 1, 1))
                ])
        #expect(report.failures == [.init(failure: "no_route", requests: .init(1, 1, 1))])
        #expect(report.limits == [])
    }

    @Test("what is older than a window is no part of it, and is forgotten after the longest")
    func windows() {
        let metrics = LoopMetrics()
        // What came before does not count.
        count(metrics, "a", .verified, .allow, times: 100)
        let history = TrafficHistory([metrics], now: start)
        var now = start
        /// A quarter of an hour and more, one request in each interval.
        for _ in 0..<80 {
            count(metrics, "a", .verified, .allow, status: 503)
            now = now.advanced(by: .seconds(15))
            history.sample(at: now)
        }
        let report = history.report(at: now)
        #expect(report.windows.map(\.requests) == [4, 20, 60])
        #expect(report.windows.map(\.seconds) == [60, 300, 900])
        #expect(report.windows.map(\.serverErrors) == [4, 20, 60])
        // Between two samples a window covers a little more than its name says.
        count(metrics, "a", .verified, .allow, times: 2)
        let between = history.report(at: now.advanced(by: .seconds(7)))
        #expect(between.windows.map(\.seconds) == [67, 307, 907])
        #expect(between.windows.map(\.requests) == [6, 22, 62])
        // Long after the last request nothing is left.
        history.sample(at: now.advanced(by: .seconds(2000)))
        let late = history.report(at: now.advanced(by: .seconds(3000)))
        #expect(late.windows.map(\.requests) == [0, 0, 0] && late.verdicts == [])
    }

    @Test("limits that were hit are listed by their names")
    func limits() throws {
        let metrics = LoopMetrics()
        let history = TrafficHistory([metrics], now: start)
        let limit = try #require(Limit.allCases.last)
        metrics.listener("l").limits.count(limit)
        let report = history.report(at: start.advanced(by: .seconds(1)))
        #expect(report.limits == [.init(limit: limit.rawValue, hits: .init(1, 1, 1))])
        #expect(report.failures == [])
    }
}

@Suite("Problems of a status report")
struct StatusProblemTests {
    private func report(_ change: (inout StatusReport) -> Void) -> [StatusProblem] {
        var report = StatusReport(
            process: .init(
                version: "1", pid: 1, startedAt: "", uptimeSeconds: 1, phase: "serving",
                ready: true, loops: 2),
            configuration: .init(file: "f", loadedAt: ""))
        change(&report)
        report.findProblems()
        return report.problems
    }

    private func server(_ state: StatusReport.ServerPart.State, _ name: String = "s:1")
        -> StatusReport.ServerPart
    {
        .init(server: name, configured: name, state: state, why: "because")
    }

    private func upstream(_ servers: [StatusReport.ServerPart], panic: Bool = false)
        -> StatusReport.UpstreamPart
    {
        .init(
            name: "api", balance: "hash", protocol: "h2c",
            available: servers.count { $0.state == .ready || $0.state == .returning },
            total: servers.count, panic: panic, waiting: 0, servers: servers)
    }

    @Test("there are none where all is well")
    func none() {
        #expect(
            report { $0.upstreams = [upstream([server(.ready), server(.returning)])] } == [])
    }

    @Test("the worst come first, whatever they are about")
    func order() {
        let problems = report { report in
            report.process.silentLoops = [1]
            report.process.notReady = ["no keys"]
            report.process.droppedLogLines = 3
            report.configuration.lastReloadAt = "T"
            report.configuration.lastReloadErrors = ["p.conf:1:2: error: wrong\n  x = 1", "b", "c"]
            report.upstreams = [
                upstream([server(.ready), server(.draining, "d:1"), server(.ejected, "e:1")])
            ]
            report.certificates = [
                .init(file: "old.pem", names: [], expiresAt: "T", secondsLeft: -1),
                .init(file: "soon.pem", names: [], expiresAt: "T", secondsLeft: 86_400 * 13),
                .init(file: "fine.pem", names: [], expiresAt: "T", secondsLeft: 86_400 * 15),
            ]
        }
        #expect(
            problems.map(\.text) == [
                "event loop 1 does not answer: its clients wait", "not ready: no keys",
                "the certificate old.pem has expired",
                "3 log lines were dropped since the start: the reader of the log is too slow",
                "the reload at T changed nothing: p.conf:1:2: error: wrong (and 2 more)",
                "upstream api: e:1 is ejected: because",
                "the certificate soon.pem expires at T", "upstream api: d:1 is draining: because",
            ])
        #expect(problems.map(\.severity.rawValue).first == "critical")
        #expect(problems.map(\.severity.rawValue).last == "note")
    }

    @Test(
        "an upstream without a working server is critical, and says what becomes of its requests",
        arguments: [
            ([.unhealthy, .unresolved], false, "no server works: its requests get 503"),
            ([.unhealthy, .ejected], true, "no server works: requests go to all of them"),
            ([.draining, .draining], false, "every server is drained: its requests get 503"),
            ([.ready, .ejected, .ejected], true, "only 1 of 3 servers work"),
        ] as [([StatusReport.ServerPart.State], Bool, String)])
    func upstreams(
        _ states: [StatusReport.ServerPart.State], _ panic: Bool, _ phrase: String
    ) throws {
        let problems = report {
            $0.upstreams = [upstream(states.map { server($0) }, panic: panic)]
        }
        let first = try #require(problems.first)
        #expect(first.severity == .critical && first.text.contains(phrase), "\(first.text)")
    }

    @Test("5xx are a problem when there are many of them, and the share is notable")
    func errors() {
        let cases: [(UInt64, UInt64, Bool)] = [
            (9, 9, false), (10, 200, true), (10, 201, false), (0, 0, false),
        ]
        for (errors, requests, isProblem) in cases {
            let problems = report { report in
                report.traffic.windows = [
                    .init(
                        minutes: 1, seconds: 60, requests: requests, perSecond: 1,
                        serverErrors: errors, rejected: 0, wouldReject: 0)
                ]
                report.traffic.failures = [
                    .init(failure: "upstream_connect", requests: .init(9, 9, 9))
                ]
            }
            #expect(problems.isEmpty == !isProblem)
            if isProblem { #expect(problems[0].text.hasSuffix("5xx, mostly upstream_connect")) }
        }
    }

    @Test("a replay store that is nearly full, full or out of reach is told")
    func replay() {
        let table: [(Int?, Int?, String?, StatusProblem.Severity?)] = [
            (89, 100, "closed", nil), (90, 100, nil, .warning), (100, 100, nil, .critical),
            (nil, nil, "open", .critical), (nil, nil, "half_open", .critical), (5, 0, nil, nil),
        ]
        for (entries, limit, breaker, severity) in table {
            let problems = report {
                $0.replay = .init(
                    store: "file", entries: entries, entryLimit: limit, breaker: breaker)
            }
            #expect(problems.first?.severity == severity)
        }
    }

    @Test("times are written as RFC 3339 has them")
    func times() {
        #expect(InternetTime.text(1_796_019_227) == "2026-11-30T06:13:47Z")
        #expect(InternetTime.text(-1) == "1970-01-01T00:00:00Z")
        #expect(InternetTime.text(.max) == "9999-12-31T23:59:59Z")
    }
}
