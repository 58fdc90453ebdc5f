/// What the rate limit of its route had to do with a request; empty where there is none, and for a
/// request within it.
public struct LimitNote: OptionSet, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The request was beyond the limit, and was refused.
    public static let rejected = LimitNote(rawValue: 1)
    /// The request was beyond a limit that is only monitored.
    public static let wouldReject = LimitNote(rawValue: 2)
    /// The request has no app or field that the limit goes by, or no address: it counted for its
    /// network, or for all that have none.
    public static let keyMissing = LimitNote(rawValue: 4)
}

/// What is counted for the limit of a route.
public enum RateLimitEvent: String, Sendable, CaseIterable {
    case reject
    case wouldReject = "would_reject"
    case keyMissing = "key_missing"
}
