internal import Configuration
internal import Policy

/// The limits of a configuration with the buckets of their clients. Shared by all loops, and handed
/// on to the next configuration as far as that has the same limits.
public final class RateLimits: Sendable {
    /// By index of the route; nil where it has no limit.
    let routes: [RouteLimit?]
    /// Bad tokens by client network; nil where any number may be verified.
    let verifications: BucketTable?
    private let verificationLimit: VerificationLimit

    /// - Parameter previous: Whose buckets go on where a route of the same name has the same limit,
    ///   whatever happens beyond it.
    init(_ configuration: Configuration, previous: RateLimits?) {
        let known = previous?.byName ?? [:]
        routes = configuration.routes.routes.map { route in
            guard let limit = route.rateLimit, let bucket = limit.bucket else { return nil }
            let before = known[route.name]
            let isSame = before?.limit.sharesBuckets(with: limit) ?? false
            let table =
                isSame
                ? before?.table
                : BucketTable(bucket, networks: limit.networks, maxEntries: limit.maxEntries)
            return table.map { RouteLimit(limit, name: route.name, table: $0) }
        }
        let limit = configuration.server.verifications
        verificationLimit = limit
        if let previous, previous.verificationLimit == limit {
            verifications = previous.verifications
        } else {
            verifications = limit.bucket.map {
                BucketTable($0, networks: limit.networks, maxEntries: limit.maxEntries)
            }
        }
    }

    private var byName: [String: RouteLimit] {
        var found: [String: RouteLimit] = [:]
        for case let limit? in routes { found[limit.name] = limit }
        return found
    }

    /// Regular housekeeping.
    func purge(at now: Int64) {
        for case let limit? in routes { limit.table.purge(at: now) }
        verifications?.purge(at: now)
    }
}

/// The limit of a route.
final class RouteLimit: Sendable {
    /// As configured.
    let limit: RateLimit
    /// The route's.
    let name: String
    /// Of all its clients.
    let table: BucketTable
    /// Value of `RateLimit-Policy`.
    let policyField: [UInt8]
    /// Begins the value of `RateLimit`: all but the seconds.
    let exhaustedField: [UInt8]

    init(_ limit: RateLimit, name: String, table: BucketTable) {
        self.limit = limit
        self.name = name
        self.table = table
        policyField = limit.policyField(name)
        exhaustedField = Array("\"\(name)\";r=0;t=".utf8)
    }
}

extension RateLimits {
    /// Bytes that the buckets of one limit take at most.
    public static func byteLimit(maxEntries: Int) -> Int {
        BucketTable.byteLimit(maxEntries: maxEntries)
    }

    /// What the tables hold, for the metrics.
    public var status: RateLimitStatus {
        RateLimitStatus(
            routes: routes.compactMap { limit in
                limit.map { ($0.name, RateLimitStatus.Table($0.table)) }
            },
            verifications: verifications.map(RateLimitStatus.Table.init))
    }
}
