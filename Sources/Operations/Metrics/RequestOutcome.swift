internal import Attestation
internal import Policy

/// Which requests of a loop are counted together: those of one route and one app that ended alike in
/// every label that a metric has. The metrics page adds them up by each label.
struct RequestOutcome: Equatable {
    /// Routes and apps are numbered up to this; those beyond share it. A configuration file with as
    /// many could not be read.
    static let highestNumber: UInt32 = 1 << 24 - 1

    /// Bits from above: always 1, route (24), app (24), verdict (5), action (2), class of the status
    /// (3), duration (4).
    let key: UInt64

    /// - Parameters:
    ///   - route: The route's number.
    ///   - app: The number of the app's label.
    @inline(__always)
    init(
        route: UInt32, app: UInt32, verdict: Verdict?, action: Action?, status: UInt16,
        microseconds: Int64
    ) {
        let row = VerdictLabels.row(of: verdict)
        let column = VerdictLabels.column(of: action)
        let bucket = Histogram.requestBucket(of: microseconds)
        let end = row << 9 | column << 7 | Int(min(status / 100, 5)) << 4 | bucket
        key = Self.key(route, app) | UInt64(truncatingIfNeeded: end)
    }

    /// - Parameter key: Of another outcome.
    init(key: UInt64) {
        self.key = key
    }

    /// Not an outcome: where a route's rare sums are kept.
    @inline(__always)
    static func rareSums(ofRoute route: UInt32) -> RequestOutcome {
        RequestOutcome(key: key(route, 0) | 0x1F << 9)
    }

    /// The number of the route.
    var route: Int { Int(key >> 38 & 0xFF_FFFF) }
    /// The number of the app's label.
    var app: Int { Int(key >> 14 & 0xFF_FFFF) }
    /// The index among the labels of verdicts; nil for rare sums.
    var row: Int? {
        let row = Int(key >> 9 & 0x1F)
        return row < VerdictLabels.rows.count ? row : nil
    }
    /// The index among the labels of actions.
    var column: Int { Int(key >> 7 & 3) }
    /// The first digit of the status, at most 5; 0 is a request that got no answer.
    var statusClass: Int { min(Int(key >> 4 & 7), 5) }
    /// The bucket of the duration.
    var bucket: Int { Int(key & 0xF) }

    @inline(__always)
    private static func key(_ route: UInt32, _ app: UInt32) -> UInt64 {
        1 << 63 | UInt64(min(route, highestNumber)) << 38 | UInt64(min(app, highestNumber)) << 14
    }
}
