/// `rate_limit` of a route: how many requests it takes of one client.
public struct RateLimit: Sendable, Hashable {
    /// What happens to a request beyond the limit.
    public enum Mode: String, Sendable, CaseIterable {
        /// It is answered 429.
        case enforce
        /// It is forwarded, and counted.
        case monitor
    }

    /// What one client is. A request without what `app` and `field` ask for counts for its network.
    public enum Key: Sendable, Hashable {
        case clientNetwork
        /// The app of a verified token; known only behind its verification.
        case app
        /// A request field, lower case.
        case field(String)
    }

    /// How many requests within `seconds`.
    public var requests: Int
    /// Whole seconds.
    public var seconds: Int
    /// How many of them at once.
    public var burst: Int
    /// What one client is.
    public var key: Key
    /// What one client network is.
    public var networks = NetworkPrefixes(ipv4: 32, ipv6: 64)
    /// What happens beyond the limit.
    public var mode = Mode.enforce
    /// How many clients are told apart at most. Beyond them those of one neighbourhood share.
    public var maxEntries = 100_000

    /// - Parameter burst: `requests` when nil.
    public init(requests: Int, seconds: Int, burst: Int? = nil, key: Key = .clientNetwork) {
        self.requests = requests
        self.seconds = seconds
        self.burst = burst ?? requests
        self.key = key
    }

    /// The bucket of each client; nil when the numbers make none (`TokenBucket.init`).
    public var bucket: TokenBucket? {
        let (nanoseconds, overflow) = Int64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        return overflow ? nil : TokenBucket(tokens: requests, per: nanoseconds, burst: burst)
    }

    /// Whether the buckets of `other` are as good as this limit's own: all but what is done beyond
    /// the limit is the same.
    public func sharesBuckets(with other: RateLimit) -> Bool {
        var same = other
        same.mode = mode
        return self == same
    }

    /// The value of `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers-10, section 3).
    ///
    /// - Parameter name: The route's, which holds nothing that a string of RFC 9651 would have to
    ///   escape.
    public func policyField(_ name: String) -> [UInt8] {
        Array("\"\(name)\";q=\(requests);w=\(seconds)".utf8)
    }
}

/// `verifications` of `[server]`: how many tokens of one client network may turn out bad, after a
/// signature was computed for them, before none is computed any more.
public struct VerificationLimit: Sendable, Hashable {
    /// How many a second; 0 for any number.
    public var perSecond = 500
    /// How many at once.
    public var burst = 5000
    /// What one client network is. Coarse: only who sends bad tokens is charged.
    public var networks = NetworkPrefixes(ipv4: 32, ipv6: 48)
    /// How many networks are told apart at most.
    public var maxEntries = 100_000

    public init() {}

    /// The bucket of each network; nil where there is no limit.
    public var bucket: TokenBucket? {
        TokenBucket(tokens: perSecond, per: 1_000_000_000, burst: burst)
    }
}
