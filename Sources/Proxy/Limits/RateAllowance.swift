internal import Reactor

/// How long a client may be waited for while a body moves: a grace time, and as long as what has
/// moved takes at the lowest rate. Only the time in which nothing but the client is waited for
/// counts, so a slow backend uses up nobody's patience.
struct RateAllowance {
    private var waited: Int64 = 0

    /// How much longer the client may be waited for; 0 when the time is over.
    ///
    /// - Parameters:
    ///   - bytes: What has moved so far.
    ///   - rate: Bytes per second, at least 1.
    ///   - grace: Nanoseconds.
    func left(bytes: UInt64, rate: UInt64, grace: Int64) -> Int64 {
        // Whole seconds first: nanoseconds of a large body would overflow.
        let (seconds, rest) = bytes.quotientAndRemainder(dividingBy: rate)
        let (whole, isLong) = Int64(clamping: seconds).multipliedReportingOverflow(
            by: 1_000_000_000)
        // The rest is less than the rate, which is 1 GiB at most.
        let fraction = Int64(clamping: rest &* 1_000_000_000 / rate)
        let (earned, isLonger) = whole.addingReportingOverflow(fraction)
        let (allowed, isLongest) = earned.addingReportingOverflow(grace)
        return isLong || isLonger || isLongest ? .max : max(0, allowed - waited)
    }

    /// The client was waited for.
    mutating func spend(_ nanoseconds: Int64) {
        waited = waited.addingReportingOverflow(max(0, nanoseconds)).partialValue
    }
}
