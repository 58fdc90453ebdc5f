/// How one attempt to get a project's keys ended. The raw values are label values of
/// `portcullis_jwks_refreshes_total`.
public enum KeyRefreshResult: String, Sendable, CaseIterable {
    /// New keys, or the same ones again.
    case success
    // An https or http source: the phase in which the request failed.
    case resolve, connect, proxy, tls, send, receive, status, body
    /// The request was right, but what came is no key set with a usable key.
    case content
    /// The file is not there, not readable, or holds no usable key.
    case file
}

/// What is known about one project's keys: for `/readyz`, metrics and `portcullis status`.
public struct KeySetStatus: Sendable {
    /// The project's name in the configuration.
    public var project: String
    /// Tokens of this project can be verified now.
    public var isUsable: Bool
    /// Seconds since the keys in use were fetched, or since the file that holds them was last
    /// found unchanged; nil when there never were any.
    public var ageSeconds: Double?
    /// Keys in use.
    public var keyCount: Int
    /// Entries of the key set in use that were skipped: unknown type, too short, repeated id
    /// (pitfall K5).
    public var skippedCount: Int
    /// Attempts since the start, by result, in the order of `KeyRefreshResult`; results that
    /// never happened are there with 0.
    public var refreshes: [(result: KeyRefreshResult, count: UInt64)]
    /// Seconds until the next attempt; nil while one is under way.
    public var nextAttemptSeconds: Double?
    /// Why the latest attempt failed: what, where, and what to do. nil after a success.
    public var lastError: String?

    public init(
        project: String, isUsable: Bool, ageSeconds: Double?, keyCount: Int, skippedCount: Int,
        refreshes: [(result: KeyRefreshResult, count: UInt64)], lastError: String?,
        nextAttemptSeconds: Double? = nil
    ) {
        self.project = project
        self.isUsable = isUsable
        self.ageSeconds = ageSeconds
        self.keyCount = keyCount
        self.skippedCount = skippedCount
        self.refreshes = refreshes
        self.lastError = lastError
        self.nextAttemptSeconds = nextAttemptSeconds
    }
}
