internal import Reactor

/// When the log says that something fails, and that it works again: once each, however often either
/// happens.
struct OutageNotice {
    /// What fails every other time neither fails nor works again with each of them.
    private static let calm = Duration.seconds(5)

    private var isFailing = false
    private var failedAt = MonotonicInstant(nanoseconds: 0)

    /// It failed. Whether to say so.
    mutating func failed(at now: MonotonicInstant) -> Bool {
        let isNews = !isFailing
        isFailing = true
        failedAt = now
        return isNews
    }

    /// It did what was asked of it. Whether to say that it works again.
    mutating func worked(at now: MonotonicInstant) -> Bool {
        if !isFailing || now < failedAt.advanced(by: Self.calm) { return false }
        isFailing = false
        return true
    }
}
