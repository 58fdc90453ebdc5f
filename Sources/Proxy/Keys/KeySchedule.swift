internal import Reactor

/// When to fetch one project's keys, and how long they may be used. Pure: instants and outcomes
/// in, steps out.
///
/// Google asks that a key set be cached for 6 hours at most. So a good one is renewed an hour
/// earlier, an outage is bridged until that limit, and nothing but a newer good one replaces it.
struct KeySchedule: Sendable {
    /// The intervals of a schedule.
    struct Intervals: Sendable, Equatable {
        /// Age at which keys are renewed when their origin says nothing.
        var refresh: Duration = .seconds(5 * 3600)
        /// Whatever `Cache-Control` says: keys are not renewed sooner (pitfall K6).
        var shortestRefresh: Duration = .seconds(300)
        /// Age from which keys are not used any more; nil for keys that do not age.
        var usable: Duration? = .seconds(6 * 3600)
        /// Least time between the starts of two fetches for an unknown `kid` (pitfall K3).
        var coolDown: Duration = .seconds(30)
        /// Wait after the first failure; it doubles with each further one.
        var firstRetry: Duration = .seconds(1)
        /// Longest wait while there are no usable keys.
        var longestRetryWithoutKeys: Duration = .seconds(60)
        /// Longest wait while there are.
        var longestRetryWithKeys: Duration = .seconds(300)
        /// Part of each wait by which it varies, so that a fleet does not fetch in step. 0 to 0.2.
        var jitter = 0.1

        /// A key set behind a URL.
        static let url = Intervals()
        /// A file: looking whether it changed is cheap, and its keys are the operator's own word.
        static let file = Intervals(
            refresh: .seconds(2), shortestRefresh: .seconds(2), usable: nil, coolDown: .seconds(2),
            firstRetry: .seconds(2), longestRetryWithoutKeys: .seconds(2),
            longestRetryWithKeys: .seconds(2), jitter: 0)
    }

    /// What to do next.
    enum Step: Equatable {
        /// Fetch now; report `succeeded` or `failed`.
        case fetch
        /// Nothing before this instant, unless a refetch is asked for.
        case wait(until: MonotonicInstant)
    }

    /// How often to do what.
    let intervals: Intervals
    /// When the keys in use were asked for; nil when there are none.
    private(set) var fetchedAt: MonotonicInstant?
    private var nextFetch: MonotonicInstant
    private var lastStart: MonotonicInstant?
    /// When the last fetch started that an unknown `kid` asked for.
    private var lastRefetch: MonotonicInstant?
    /// The next fetch answers an unknown `kid`.
    private var isRefetchDue = false
    private var isFetching = false
    private var failuresInRow = 0

    /// A schedule whose first step is to fetch.
    init(_ intervals: Intervals, now: MonotonicInstant) {
        self.intervals = intervals
        nextFetch = now
    }

    /// From when on the keys must not be used; nil when there are none.
    var usableUntil: MonotonicInstant? {
        guard let fetchedAt else { return nil }
        guard let usable = intervals.usable else { return .never }
        return fetchedAt.advanced(by: usable)
    }

    /// When keys are fetched next; nil while they are.
    var nextFetchAt: MonotonicInstant? { isFetching ? nil : nextFetch }

    /// Whether there are keys that may be used at `now`.
    func isUsable(at now: MonotonicInstant) -> Bool {
        guard let usableUntil else { return false }
        return now < usableUntil
    }

    /// What to do at `now`. The end of a wait may also be the moment when the keys become unusable.
    mutating func step(at now: MonotonicInstant) -> Step {
        if !isFetching && now >= nextFetch {
            isFetching = true
            lastStart = now
            if isRefetchDue { lastRefetch = now }
            isRefetchDue = false
            return .fetch
        }
        let next = isFetching ? .never : nextFetch
        if let usableUntil, now < usableUntil { return .wait(until: min(next, usableUntil)) }
        return .wait(until: next)
    }

    /// Keys of an earlier run are there; fetching goes on as planned.
    mutating func restored(fetchedAt: MonotonicInstant) {
        self.fetchedAt = fetchedAt
    }

    /// The fetch under way ended with good keys.
    ///
    /// - Parameter freshness: For how long their origin says that they stay fresh.
    mutating func succeeded(
        at now: MonotonicInstant, freshness: Duration?,
        using random: inout some RandomNumberGenerator
    ) {
        isFetching = false
        failuresInRow = 0
        // Their age counts from the request: how long they took on the way, nobody knows.
        fetchedAt = lastStart ?? now
        let wait = min(
            max(freshness ?? intervals.refresh, intervals.shortestRefresh), intervals.refresh)
        nextFetch = now.advanced(
            by: max(jittered(wait, using: &random), intervals.shortestRefresh))
        // Keys that were on their way for hours are nearly too old, or already are.
        if let usableUntil { nextFetch = min(nextFetch, usableUntil) }
    }

    /// The fetch under way failed. Good keys stay what they are.
    mutating func failed(at now: MonotonicInstant, using random: inout some RandomNumberGenerator) {
        isFetching = false
        let longest =
            isUsable(at: now)
            ? intervals.longestRetryWithKeys : intervals.longestRetryWithoutKeys
        // 2^16 times the first wait is beyond every longest one.
        let wait = min(longest, intervals.firstRetry * (1 << min(failuresInRow, 16)))
        failuresInRow += 1
        nextFetch = now.advanced(by: jittered(wait, using: &random))
        // One more attempt at the very moment when the keys run out.
        if let usableUntil, now < usableUntil { nextFetch = min(nextFetch, usableUntil) }
    }

    /// A token names a key that is not in the set. Fetches as soon as the cool-down allows; a
    /// request during one is kept, so that a key just rotated in is found when it ends (pitfall
    /// K4), and requests do not prolong it. A planned fetch begins no cool-down: keys that are
    /// rotated in right after it are found at once.
    mutating func refetchRequested(at now: MonotonicInstant) {
        // The fetch under way answers this request too.
        if isFetching { return }
        let allowed = lastRefetch?.advanced(by: intervals.coolDown) ?? now
        nextFetch = min(nextFetch, max(now, allowed))
        isRefetchDue = true
    }

    private func jittered(_ wait: Duration, using random: inout some RandomNumberGenerator)
        -> Duration
    {
        if intervals.jitter == 0 { return wait }
        return wait
            * Double.random(in: (1 - intervals.jitter)...(1 + intervals.jitter), using: &random)
    }
}
