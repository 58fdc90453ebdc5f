internal import Configuration
internal import Reactor

/// What one loop knows about whether a server works: the verdict of the checks, and what its own
/// requests met. Pure: the time and the dice come from outside.
struct ServerHealth {
    /// The share of answers is taken over this time.
    private static let window = Duration.seconds(10)
    /// A share of fewer answers says nothing.
    private static let windowMinimum = 20
    /// What a server gets at once when it comes back.
    private static let firstShare = 0.1

    /// The verdict of the checks; a server is healthy until they say otherwise.
    private(set) var passesChecks = true
    /// The end of its time out.
    private(set) var ejectedUntil = MonotonicInstant(nanoseconds: 0)
    /// Requests in a row without an answer.
    private var failures = 0
    /// Times out in a row, each twice as long as the one before.
    private var ejections = 0
    /// When it came back last; nil when it was never away.
    private var returnedAt: MonotonicInstant?
    private var windowEnd = MonotonicInstant(nanoseconds: 0)
    private var windowAnswers = 0
    private var windowErrors = 0

    /// Whether it is to be used.
    func isAvailable(at now: MonotonicInstant) -> Bool {
        passesChecks && ejectedUntil <= now
    }

    /// How much of its part a server that came back gets, more than 0 to 1.
    func share(at now: MonotonicInstant, slowStart: Int64) -> Double {
        guard let returnedAt, slowStart > 0 else { return 1 }
        let elapsed = Double(max(0, now.nanoseconds - returnedAt.nanoseconds))
        return min(1, max(Self.firstShare, elapsed / Double(slowStart)))
    }

    /// It gets requests again, little by little.
    mutating func cameBack(at now: MonotonicInstant) {
        returnedAt = now
        failures = 0
    }

    /// The checks' verdict.
    mutating func adopt(passesChecks: Bool, at now: MonotonicInstant) {
        if passesChecks && !self.passesChecks { cameBack(at: now) }
        self.passesChecks = passesChecks
    }

    /// The server answered.
    ///
    /// - Returns: whether its share of errors is a reason to eject it.
    mutating func answered(
        isError: Bool, at now: MonotonicInstant, _ settings: Ejection
    ) -> Bool {
        failures = 0
        return count(isError: isError, at: now, settings)
    }

    /// The server did not answer.
    ///
    /// - Returns: whether that is a reason to eject it.
    mutating func failed(at now: MonotonicInstant, _ settings: Ejection) -> Bool {
        failures = min(failures + 1, 1 << 20)
        let isShareReached = count(isError: true, at: now, settings)
        return isShareReached || settings.failures > 0 && failures >= settings.failures
    }

    /// Leaves the server alone for a while.
    ///
    /// - Parameter jitter: From 0 to 1; the time out is between 90 % and 110 % of what is
    ///   configured, so that loops and machines do not all come back at once.
    /// - Returns: for how long.
    mutating func eject(
        at now: MonotonicInstant, _ settings: Ejection, jitter: Double
    ) -> Duration {
        let base = max(1, settings.time.nanoseconds)
        let quiet = max(0, now.nanoseconds - ejectedUntil.nanoseconds) / base
        ejections = max(0, ejections - Int(min(quiet, 64))) + 1
        let doubled = Double(base) * Double(1 << min(ejections - 1, 30))
        let time = min(doubled, Double(settings.longest.nanoseconds)) * (0.9 + 0.2 * jitter)
        let span = Duration.nanoseconds(Int64(min(time, 9e18)))
        ejectedUntil = now.advanced(by: span)
        returnedAt = ejectedUntil
        failures = 0
        windowEnd = MonotonicInstant(nanoseconds: 0)
        return span
    }

    private mutating func count(
        isError: Bool, at now: MonotonicInstant, _ settings: Ejection
    ) -> Bool {
        guard let limit = settings.errorShare else { return false }
        if now >= windowEnd {
            windowEnd = now.advanced(by: Self.window)
            windowAnswers = 0
            windowErrors = 0
        }
        windowAnswers += 1
        windowErrors += isError ? 1 : 0
        return windowAnswers >= Self.windowMinimum
            && Double(windowErrors) * 100 >= limit * Double(windowAnswers) && windowErrors > 0
    }
}
