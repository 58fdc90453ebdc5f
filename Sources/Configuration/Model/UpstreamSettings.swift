/// `health` of an upstream: how its servers are asked whether they work.
public struct HealthCheck: Sendable, Equatable {
    /// What is asked for with GET: a path and perhaps a query.
    public var path: String
    /// Value of the Host field; nil: the name that the certificate is for, or the server's address.
    public var host: String?
    /// From one check of a server to the next, before jitter.
    public var interval: Duration = .seconds(5)
    /// How long one check may take; never longer than `interval`.
    public var timeout: Duration = .seconds(2)
    /// Checks in a row that must go well before an unhealthy server is healthy.
    public var healthyAfter = 2
    /// Checks in a row that must fail before a healthy server is unhealthy.
    public var unhealthyAfter = 3
    /// Which statuses are good.
    public var status: ClosedRange<UInt16> = 200...399

    public init(path: String) {
        self.path = path
    }
}

/// `ejection` of an upstream: when a server that fails requests is left alone, and for how long.
public struct Ejection: Sendable, Equatable {
    /// Requests in a row that fail to get an answer; 0: no number of them ejects.
    public var failures = 5
    /// Percent of a server's answers, within ten seconds, that are of status 5xx or missing; nil:
    /// no share of them ejects.
    public var errorShare: Double?
    /// The first time out. Each further one is twice as long, until the server has behaved for as
    /// long again.
    public var time: Duration = .seconds(10)
    /// The longest time out.
    public var longest: Duration = .minutes(5)

    public init() {}
}

/// `retries` of an upstream: when a request is tried once more.
public struct Retries: Sendable, Equatable {
    /// How often one request may be moved to another server, or sent again.
    public var attempts = 2
    /// Percent of the requests of a loop, within ten to twenty seconds, that retries may be; ten are
    /// always allowed. 0: no retries.
    public var budget = 20.0
    /// Requests of idempotent methods, without a body, are sent again when they were sent and not a
    /// byte of an answer came.
    public var idempotent = false

    public init() {}
}

/// `limits` of an upstream: how much one of its servers takes.
public struct ServerLimits: Sendable, Equatable {
    /// Requests that may be under way to one server, from the whole process; nil: any number. Each
    /// loop has an equal part, and at least one.
    public var connections: Int?
    /// Requests for each server that may wait until there is room; each loop has its part.
    public var queue = 100
    /// How long they may.
    public var queueTimeout: Duration = .seconds(5)

    public init() {}
}
