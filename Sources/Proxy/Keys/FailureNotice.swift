internal import Reactor

/// Decides which failures of a repeated attempt are worth a line in the log: each change, and
/// then a reminder from time to time. An outage of a night is a page of log, not a disk full.
struct FailureNotice: Sendable {
    /// What makes two failures the same.
    struct Kind: Equatable, Sendable {
        /// How the attempt ended.
        var result: KeyRefreshResult
        /// There were usable keys all the same.
        var isBridged: Bool
    }

    /// How long the same failure goes without another line.
    static let reminder: Duration = .seconds(300)

    private var latest: Kind?
    private var saidAt: MonotonicInstant?

    /// An attempt failed.
    ///
    /// - Returns: whether to say so.
    mutating func failed(_ kind: Kind, at now: MonotonicInstant) -> Bool {
        if kind == latest, let saidAt, now < saidAt.advanced(by: Self.reminder) { return false }
        latest = kind
        saidAt = now
        return true
    }

    /// An attempt went well.
    ///
    /// - Returns: whether that ends a row of failures.
    mutating func succeeded() -> Bool {
        let wasFailing = latest != nil
        latest = nil
        saidAt = nil
        return wasFailing
    }
}
