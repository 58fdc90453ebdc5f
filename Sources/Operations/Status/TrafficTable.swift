internal import Policy
internal import Proxy

/// Adds samples up by what a report tells.
struct TrafficTable {
    private struct Verdict: Hashable {
        var route: String
        var verdict: String
        var action: String
    }

    private struct Reason: Hashable {
        var row: Int
        var column: Int
    }

    private static let unremarkable: Set<String> = ["", "verified", "exempt"]

    private static let rejectColumn = VerdictLabels.column(of: .reject)
    private static let wouldRejectColumn = VerdictLabels.column(of: .wouldReject)

    /// By loop: each numbers its routes itself.
    private let routes: [[String]]
    private var windows: [StatusReport.TrafficWindow] = []
    private var verdicts: [Verdict: [UInt64]] = [:]
    private var reasons: [Reason: [UInt64]] = [:]
    private var failures: [[UInt64]] = []

    init(routes: [[String]]) {
        self.routes = routes
    }

    /// Starts the next window.
    mutating func begin(_ minutes: Int64, seconds: Double) {
        windows.append(
            .init(
                minutes: Int(minutes), seconds: seconds, requests: 0, perSecond: 0,
                serverErrors: 0, rejected: 0, wouldReject: 0))
        failures.append(
            Array(repeating: 0, count: RequestFailure.allCases.count + Limit.allCases.count))
    }

    /// Adds requests that a loop counted under one key.
    mutating func add(_ key: UInt64, _ count: UInt64, loop: Int, window: Int) {
        let counted = CountedRequests(key: key)
        windows[window].requests &+= count
        if counted.statusClass == 5 { windows[window].serverErrors &+= count }
        let names = routes[loop]
        guard names.indices.contains(counted.route),
            VerdictLabels.rows.indices.contains(counted.row),
            VerdictLabels.columns.indices.contains(counted.column)
        else { return }
        let words = VerdictLabels.rows[counted.row]
        let action = VerdictLabels.columns[counted.column]
        if counted.column == Self.rejectColumn { windows[window].rejected &+= count }
        if counted.column == Self.wouldRejectColumn { windows[window].wouldReject &+= count }
        let verdict = Verdict(route: names[counted.route], verdict: words.verdict, action: action)
        verdicts[verdict, default: [0, 0, 0]][window] &+= count
        if Self.unremarkable.contains(words.verdict) { return }
        let reason = Reason(row: counted.row, column: counted.column)
        reasons[reason, default: [0, 0, 0]][window] &+= count
    }

    /// Adds failures, in the order of `RequestFailure` and `Limit`.
    mutating func add(failures counts: [UInt64], window: Int) {
        for (index, count) in counts.enumerated() { failures[window][index] &+= count }
    }

    /// All of it, the most frequent first.
    var report: StatusReport.TrafficPart {
        var report = StatusReport.TrafficPart()
        report.windows = windows.map { window in
            var window = window
            window.perSecond =
                window.seconds > 0 ? Double(window.requests) / window.seconds : 0
            return window
        }
        report.verdicts = verdicts.map { key, counts in
            .init(
                route: key.route, verdict: key.verdict, action: key.action,
                requests: Self.counts(counts))
        }.sorted {
            Self.precedes(
                $0.requests, $1.requests, [$0.route, $0.verdict, $0.action],
                [$1.route, $1.verdict, $1.action])
        }
        report.reasons = reasons.map { key, counts in
            .init(
                verdict: VerdictLabels.rows[key.row].verdict,
                reason: VerdictLabels.rows[key.row].reason,
                action: VerdictLabels.columns[key.column], requests: Self.counts(counts))
        }.sorted {
            Self.precedes(
                $0.requests, $1.requests, [$0.verdict, $0.reason, $0.action],
                [$1.verdict, $1.reason, $1.action])
        }
        report.failures = words(RequestFailure.allCases.map(\.rawValue), from: 0).map {
            .init(failure: $0.0, requests: $0.1)
        }
        report.limits = words(
            Limit.allCases.map(\.rawValue), from: RequestFailure.allCases.count
        ).map { .init(limit: $0.0, hits: $0.1) }
        return report
    }

    /// Those of some words that came, the most frequent first.
    private func words(_ words: [String], from first: Int) -> [(String, StatusReport.Counts)] {
        words.enumerated().compactMap { index, word in
            let counts = failures.map { $0[first + index] }
            return counts.allSatisfy { $0 == 0 } ? nil : (word, Self.counts(counts))
        }.sorted { Self.precedes($0.1, $1.1, [$0.0], [$1.0]) }
    }

    private static func counts(_ counts: [UInt64]) -> StatusReport.Counts {
        .init(counts[0], counts[1], counts[2])
    }

    private static func precedes(
        _ left: StatusReport.Counts, _ right: StatusReport.Counts, _ leftNames: [String],
        _ rightNames: [String]
    ) -> Bool {
        if left.fifteenMinutes != right.fifteenMinutes {
            return left.fifteenMinutes > right.fifteenMinutes
        }
        return leftNames.lexicographicallyPrecedes(rightNames)
    }
}

/// Requests that a report counts together: those of one route, verdict, action and class of status.
struct CountedRequests {
    /// Route, then a byte each for the other three.
    let key: UInt64

    /// - Parameter outcome: Requests of the same apps and durations are counted together.
    /// - Returns: nil for what is no outcome.
    init?(_ outcome: RequestOutcome) {
        guard let row = outcome.row else { return nil }
        let end = row << 16 | outcome.column << 8 | outcome.statusClass
        key = UInt64(truncatingIfNeeded: outcome.route) << 24 | UInt64(truncatingIfNeeded: end)
    }

    init(key: UInt64) {
        self.key = key
    }

    var route: Int { Int(truncatingIfNeeded: key >> 24) }
    var row: Int { Int(key >> 16 & 0xFF) }
    var column: Int { Int(key >> 8 & 0xFF) }
    var statusClass: Int { Int(key & 0xFF) }
}
