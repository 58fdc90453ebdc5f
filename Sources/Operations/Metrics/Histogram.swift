/// How long things took: a Prometheus histogram of one loop, written by that loop alone.
final class Histogram: Sendable {
    /// Upper bounds in microseconds, and as Prometheus writes them, in seconds.
    static let bounds: [(microseconds: Int64, label: String)] = [
        (500, "0.0005"), (1000, "0.001"), (2500, "0.0025"), (5000, "0.005"), (10_000, "0.01"),
        (25_000, "0.025"), (50_000, "0.05"), (100_000, "0.1"), (250_000, "0.25"),
        (500_000, "0.5"), (1_000_000, "1"), (2_500_000, "2.5"), (5_000_000, "5"),
        (10_000_000, "10"), (30_000_000, "30"),
    ]

    /// One cell for each bound, and one for what is above them all.
    private let cells = InlineArray<16, Counter> { _ in Counter() }
    private let sum = Counter()

    /// Records a duration; what a clock that stepped back made negative counts as nothing.
    func record(microseconds: Int64) {
        cells[Self.cell(of: microseconds)].add()
        sum.add(UInt64(clamping: microseconds))
    }

    /// What was recorded so far.
    var totals: HistogramTotals {
        var totals = HistogramTotals()
        for index in cells.indices { totals.counts[index] = cells[index].total }
        totals.microseconds = sum.total
        return totals
    }

    private static func cell(of microseconds: Int64) -> Int {
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
    /// By bucket, not cumulative.
    var counts = [UInt64](repeating: 0, count: 16)
    var microseconds: UInt64 = 0

    /// Adds what another loop recorded.
    mutating func add(_ other: HistogramTotals) {
        for index in counts.indices { counts[index] &+= other.counts[index] }
        microseconds &+= other.microseconds
    }
}
