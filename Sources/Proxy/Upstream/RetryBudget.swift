internal import Reactor

/// Keeps retries from becoming most of the load of an upstream that is in trouble. Pure; for one
/// upstream in one loop.
struct RetryBudget {
    /// Requests and retries of one or two of these are held against each other.
    static let window = Duration.seconds(10)
    /// So many retries in that time are always allowed, or the first ones after a quiet night would
    /// not be.
    static let minimum = 10

    private var windowEnd = MonotonicInstant(nanoseconds: 0)
    private var current = Counts()
    private var previous = Counts()

    private struct Counts {
        var requests = 0
        var retries = 0
    }

    /// A request is about to be forwarded.
    @inline(__always)
    mutating func requested(at now: MonotonicInstant) {
        if now >= windowEnd { turn(now) }
        current.requests &+= 1
    }

    /// Takes one retry out of the budget.
    ///
    /// - Parameter share: Percent of the requests that may be retries; 0: none at all.
    /// - Returns: whether there was one left.
    mutating func take(at now: MonotonicInstant, share: Double) -> Bool {
        if share <= 0 { return false }
        if now >= windowEnd { turn(now) }
        let requests = Double(current.requests + previous.requests)
        let retries = current.retries + previous.retries
        if retries >= Self.minimum && Double(retries) * 100 >= share * requests { return false }
        current.retries += 1
        return true
    }

    private mutating func turn(_ now: MonotonicInstant) {
        // What lies further back says nothing of now.
        previous = now < windowEnd.advanced(by: Self.window) ? current : Counts()
        current = Counts()
        windowEnd = now.advanced(by: Self.window)
    }
}
