/// How long things took: a Prometheus histogram of one loop, written by that loop alone.
final class Histogram: Sendable {
    /// What is measured decides which durations are told apart.
    enum Scale: Sendable, CaseIterable {
        /// Requests: half a millisecond to half a minute.
        case requests
        /// Claims: a microsecond in memory to seconds over a network.
        case claims

        /// Upper bounds in microseconds, and as Prometheus writes them, in seconds.
        var bounds: [(microseconds: Int64, label: String)] {
            switch self {
            case .requests: Self.requestBounds
            case .claims: Self.claimBounds
            }
        }

        private static let requestBounds: [(microseconds: Int64, label: String)] = [
            (500, "0.0005"), (1000, "0.001"), (2500, "0.0025"), (5000, "0.005"), (10_000, "0.01"),
            (25_000, "0.025"), (50_000, "0.05"), (100_000, "0.1"), (250_000, "0.25"),
            (500_000, "0.5"), (1_000_000, "1"), (2_500_000, "2.5"), (5_000_000, "5"),
            (10_000_000, "10"), (30_000_000, "30"),
        ]

        private static let claimBounds: [(microseconds: Int64, label: String)] = [
            (1, "0.000001"), (2, "0.000002"), (5, "0.000005"), (10, "0.00001"),
            (25, "0.000025"), (50, "0.00005"), (100, "0.0001"), (250, "0.00025"),
            (1000, "0.001"), (5000, "0.005"), (25_000, "0.025"), (100_000, "0.1"),
            (250_000, "0.25"), (500_000, "0.5"), (2_500_000, "2.5"),
        ]
    }

    let scale: Scale

    /// One cell for each bound, and one for what is above them all.
    private let cells = InlineArray<16, Counter> { _ in Counter() }
    private let sum = Counter()

    /// A histogram in which nothing is recorded.
    init(_ scale: Scale = .requests) {
        self.scale = scale
    }

    /// Records a duration; what a clock that stepped back made negative counts as nothing.
    func record(microseconds: Int64) {
        switch scale {
        case .requests: cells[Self.requestBucket(of: microseconds)].add()
        case .claims: cells[Self.claimBucket(of: microseconds)].add()
        }
        sum.add(UInt64(clamping: microseconds))
    }

    /// What was recorded so far.
    var totals: HistogramTotals {
        var totals = HistogramTotals(scale: scale)
        for index in cells.indices { totals.counts[index] = cells[index].total }
        totals.microseconds = sum.total
        return totals
    }

    private static func claimBucket(of microseconds: Int64) -> Int {
        // The first bounds are those that most claims meet.
        let bounds = Scale.claims.bounds
        var cell = 0
        while cell < bounds.count && microseconds > bounds[cell].microseconds { cell += 1 }
        return cell
    }

    /// The bucket of a request's duration: the first whose bound it does not exceed, or the last.
    static func requestBucket(of microseconds: Int64) -> Int {
        // A binary search over constants: this runs for every request.
        if microseconds <= 100_000 {
            if microseconds <= 5000 {
                if microseconds <= 1000 { return microseconds <= 500 ? 0 : 1 }
                return microseconds <= 2500 ? 2 : 3
            }
            if microseconds <= 25_000 { return microseconds <= 10_000 ? 4 : 5 }
            return microseconds <= 50_000 ? 6 : 7
        }
        if microseconds <= 2_500_000 {
            if microseconds <= 500_000 { return microseconds <= 250_000 ? 8 : 9 }
            return microseconds <= 1_000_000 ? 10 : 11
        }
        if microseconds <= 10_000_000 { return microseconds <= 5_000_000 ? 12 : 13 }
        return microseconds <= 30_000_000 ? 14 : 15
    }
}

/// What histograms recorded, added up.
struct HistogramTotals {
    /// Of all histograms that are added up.
    var scale = Histogram.Scale.requests
    /// By bucket, not cumulative.
    var counts = [UInt64](repeating: 0, count: 16)
    var microseconds: UInt64 = 0

    /// Adds durations of one bucket.
    mutating func add(_ count: UInt64, microseconds: UInt64, bucket: Int) {
        counts[bucket] &+= count
        self.microseconds &+= microseconds
    }

    /// Adds what another loop recorded.
    mutating func add(_ other: HistogramTotals) {
        for index in counts.indices { counts[index] &+= other.counts[index] }
        microseconds &+= other.microseconds
    }
}
