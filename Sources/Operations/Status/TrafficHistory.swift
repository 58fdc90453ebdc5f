internal import Proxy
public import Reactor
internal import Synchronization

/// What the loops counted in the last quarter of an hour, in samples that a timer takes: nothing of
/// it is on the way of a request.
///
/// A sample holds what changed since the one before, so that 10,000 routes of which ten are used cost
/// what ten cost.
public final class TrafficHistory: Sendable {
    /// How often `sample` is to be called.
    public static let interval = Duration.seconds(15)
    /// The windows of a report, in minutes.
    static let windows: [Int64] = [1, 5, 15]
    private static let span = Duration.seconds(15 * 60)

    private struct Sample {
        var begin: MonotonicInstant
        var end: MonotonicInstant
        /// By loop, then by `LoopMetrics.CountedRequests`.
        var requests: [[UInt64: UInt64]]
        /// In the order of `RequestFailure`, and behind them of `Limit`.
        var failures: [UInt64]
    }

    private struct State {
        /// The oldest first.
        var samples: [Sample] = []
        var sampledAt: MonotonicInstant
        /// What had been counted then.
        var requests: [[UInt64: UInt64]]
        var failures: [UInt64]
    }

    private let loops: [LoopMetrics]
    private let state: Mutex<State>

    /// A history that begins now.
    public init(_ loops: [LoopMetrics], now: MonotonicInstant) {
        self.loops = loops
        state = Mutex(
            State(
                sampledAt: now, requests: loops.map(\.countedRequests),
                failures: Self.failures(loops)))
    }

    /// Takes a sample, and forgets what is too old.
    public func sample(at now: MonotonicInstant) {
        let (requests, failures) = (loops.map(\.countedRequests), Self.failures(loops))
        state.withLock { state in
            state.samples.append(Self.sample(state, requests, failures, at: now))
            state.sampledAt = now
            state.requests = requests
            state.failures = failures
            state.samples.removeAll { $0.end.advanced(by: Self.span) <= now }
        }
    }

    /// The last minutes, up to now.
    public func report(at now: MonotonicInstant) -> StatusReport.TrafficPart {
        let (requests, failures) = (loops.map(\.countedRequests), Self.failures(loops))
        let samples = state.withLock { state in
            state.samples + [Self.sample(state, requests, failures, at: now)]
        }
        var table = TrafficTable(routes: loops.map(\.routeNames))
        for (window, minutes) in Self.windows.enumerated() {
            let edge = now.advanced(by: .seconds(-60 * minutes))
            let covered = samples.filter { $0.end > edge }
            let begin = covered.first?.begin ?? now
            table.begin(minutes, seconds: Double(now.microseconds(since: begin)) / 1e6)
            for sample in covered {
                for (loop, counts) in sample.requests.enumerated() {
                    for (key, count) in counts { table.add(key, count, loop: loop, window: window) }
                }
                table.add(failures: sample.failures, window: window)
            }
        }
        return table.report
    }

    private static func sample(
        _ state: State, _ requests: [[UInt64: UInt64]], _ failures: [UInt64],
        at now: MonotonicInstant
    ) -> Sample {
        let changed = zip(requests, state.requests).map { after, before in
            after.reduce(into: [UInt64: UInt64]()) { changed, entry in
                let difference = entry.value &- (before[entry.key] ?? 0)
                if difference > 0 { changed[entry.key] = difference }
            }
        }
        return Sample(
            begin: state.sampledAt, end: now, requests: changed,
            failures: zip(failures, state.failures).map { $0 &- $1 })
    }

    private static func failures(_ loops: [LoopMetrics]) -> [UInt64] {
        let listeners = loops.flatMap(\.allListeners.values)
        return RequestFailure.allCases.map { failure in
            loops.reduce(0) { $0 &+ $1.failures.total(failure) }
        }
            + Limit.allCases.map { limit in
                listeners.reduce(0) { $0 &+ $1.limits.total(limit) }
            }
    }
}
