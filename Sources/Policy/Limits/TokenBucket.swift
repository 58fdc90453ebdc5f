/// How often something may happen: a bucket that holds so many tokens, and gets new ones at an even
/// rate.
///
/// In the form of the generic cell rate algorithm (ITU-T I.371, Annex A): all that a bucket is in
/// one number, the instant at which it is full again. A full bucket is as good as none, so nothing
/// is lost when its number is forgotten.
public struct TokenBucket: Sendable, Hashable {
    /// A bucket that takes longer than this to fill is refused, nanoseconds: 366 days. It keeps
    /// every sum with the age of a machine far below 2⁶³.
    public static let longestFill: Int64 = 366 * 86_400 * 1_000_000_000

    /// A bucket that lacks more than it holds, and more by this, was charged by a clock that was set
    /// back since. Loops read the clock once a turn, so theirs differ by less, however busy they
    /// are.
    private static let clockDifference: Int64 = 60 * 1_000_000_000

    /// From one token to the next, nanoseconds. Rounded up: never more than the rate.
    public let interval: Int64
    /// How long an empty bucket takes to be full, nanoseconds.
    public let fillTime: Int64

    /// Nil when an argument is not above zero, or the bucket would take more than `longestFill`.
    ///
    /// - Parameters:
    ///   - tokens: How many come within `nanoseconds`.
    ///   - burst: How many the bucket holds.
    public init?(tokens: Int, per nanoseconds: Int64, burst: Int) {
        guard tokens > 0, nanoseconds > 0, burst > 0 else { return nil }
        let (whole, rest) = nanoseconds.quotientAndRemainder(dividingBy: Int64(tokens))
        let interval = whole + (rest > 0 ? 1 : 0)
        let (fillTime, overflow) = interval.multipliedReportingOverflow(by: Int64(burst))
        guard !overflow, fillTime <= Self.longestFill else { return nil }
        self.interval = interval
        self.fillTime = fillTime
    }

    /// Takes a token, if there is one.
    ///
    /// - Parameters:
    ///   - full: When the bucket is full; `now` or earlier for one that nobody took from.
    ///   - now: Nanoseconds on a clock that never goes back. If it does, nothing is given away, and
    ///     a minute after `fillTime` all is as if it had not.
    /// - Returns: nil when it was taken, else for how many nanoseconds there is none.
    public func take(from full: inout Int64, at now: Int64) -> Int64? {
        if let wait = wait(full, at: now) {
            let (latest, overflow) = now.addingReportingOverflow(fillTime)
            if !overflow, full > latest, full &- latest > Self.clockDifference { full = latest }
            return wait
        }
        // No sum to check: `wait` saw that there is room below `now` and `fillTime`.
        full = max(full, now) + interval
        return nil
    }

    /// For how many nanoseconds there is no token; nil when there is one.
    public func wait(_ full: Int64, at now: Int64) -> Int64? {
        let (latest, overflow) = now.addingReportingOverflow(fillTime)
        if overflow { return fillTime }
        let last = latest - interval
        if full <= last { return nil }
        let (wait, isFar) = full.subtractingReportingOverflow(last)
        return isFar ? fillTime : min(wait, fillTime)
    }
}
