extension StatusReport {
    /// What happened in the last minutes.
    public struct TrafficPart: Sendable, Codable, Equatable {
        /// Of 1, 5 and 15 minutes.
        public var windows: [TrafficWindow] = []
        /// The most frequent first.
        public var verdicts: [VerdictRow] = []
        /// Verdicts other than `verified` and `exempt` by their reason, the most frequent first.
        public var reasons: [ReasonRow] = []
        /// How requests failed that did not end well, the most frequent first.
        public var failures: [FailureRow] = []
        /// Limits that requests and connections ran into, the most frequent first.
        public var limits: [LimitRow] = []

        public init() {}
    }

    /// A number for each window.
    public struct Counts: Sendable, Codable, Equatable {
        public var oneMinute: UInt64 = 0
        public var fiveMinutes: UInt64 = 0
        public var fifteenMinutes: UInt64 = 0

        // The names are what `convertToSnakeCase` leaves alone.
        enum CodingKeys: String, CodingKey {
            case oneMinute = "1m"
            case fiveMinutes = "5m"
            case fifteenMinutes = "15m"
        }

        public init(_ oneMinute: UInt64, _ fiveMinutes: UInt64, _ fifteenMinutes: UInt64) {
            self.oneMinute = oneMinute
            self.fiveMinutes = fiveMinutes
            self.fifteenMinutes = fifteenMinutes
        }

        /// In the order of the windows.
        public var all: [UInt64] { [oneMinute, fiveMinutes, fifteenMinutes] }
    }

    /// All requests of a time.
    public struct TrafficWindow: Sendable, Codable, Equatable {
        /// What it is called.
        public var minutes: Int
        /// What it covers: up to a sample more, or less while the process is younger.
        public var seconds: Double
        public var requests: UInt64
        public var perSecond: Double
        /// Answers of 5xx.
        public var serverErrors: UInt64
        /// Requests that policy rejected, and those that it would have rejected.
        public var rejected: UInt64
        public var wouldReject: UInt64
    }

    /// Requests of a route that had one verdict and action. Both are empty for requests that ended
    /// before there was one.
    public struct VerdictRow: Sendable, Codable, Equatable {
        public var route: String
        public var verdict: String
        public var action: String
        public var requests: Counts
    }

    /// Requests that had one reason.
    public struct ReasonRow: Sendable, Codable, Equatable {
        public var verdict: String
        public var reason: String
        public var action: String
        public var requests: Counts
    }

    /// Requests and connections that one limit met.
    public struct LimitRow: Sendable, Codable, Equatable {
        public var limit: String
        public var hits: Counts
    }

    /// Requests that failed in one way.
    public struct FailureRow: Sendable, Codable, Equatable {
        public var failure: String
        public var requests: Counts
    }
}
