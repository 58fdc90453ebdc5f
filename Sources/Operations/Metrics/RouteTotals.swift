/// What a loop counted for one route, added up for the metrics page.
struct RouteTotals {
    /// Requests by the app's label, then by row and column of `VerdictLabels`.
    private(set) var requests: [String: VerdictTotals] = [:]
    /// From a request's first byte to the end of its answer.
    private(set) var duration = HistogramTotals()
    /// Requests by the first digit of the status; 0 is a request that got no answer.
    private(set) var responses: [UInt64] = Array(repeating: 0, count: 6)
    /// Body bytes from clients.
    private(set) var bytesIn: UInt64 = 0
    /// Body bytes to clients.
    private(set) var bytesOut: UInt64 = 0
    /// Requests without the key that the share goes by.
    private(set) var shareKeyMissing: UInt64 = 0

    /// Adds the sums that `LoopMetrics` keeps under an outcome.
    mutating func add(_ outcome: RequestOutcome, _ sums: (UInt64, UInt64, UInt64), app: String) {
        guard let row = outcome.row else {
            bytesIn &+= sums.0
            shareKeyMissing &+= sums.1
            return
        }
        requests[app, default: VerdictTotals()].add(sums.0, row: row, column: outcome.column)
        duration.add(sums.0, microseconds: sums.1, bucket: outcome.bucket)
        responses[outcome.statusClass] &+= sums.0
        bytesOut &+= sums.2
    }
}

/// How many requests had each verdict and action.
struct VerdictTotals {
    private var cells = [UInt64](
        repeating: 0, count: VerdictLabels.rows.count * VerdictLabels.columns.count)

    /// How many had the verdict of a row and the action of a column.
    func total(row: Int, column: Int) -> UInt64 {
        cells[row * VerdictLabels.columns.count + column]
    }

    /// Adds requests.
    fileprivate mutating func add(_ count: UInt64, row: Int, column: Int) {
        cells[row * VerdictLabels.columns.count + column] &+= count
    }
}
