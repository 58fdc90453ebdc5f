public import Reactor
internal import Synchronization

/// Leaves a store alone that failed again and again, so that requests need not each wait for it to
/// fail once more.
///
/// Closed, it lets everything pass. `threshold` failures in a row open it: everything is refused for
/// a pause. Then one is let pass, to see (half-open): its success closes the breaker, its failure
/// opens it again for twice as long. One breaker serves all loops.
public final class CircuitBreaker: Sendable {
    /// What becomes of a claim.
    public enum Admission: Sendable, Equatable {
        case pass
        /// It passes to see how the store is. Its outcome has to be told, whatever it is.
        case probe
        case refuse
    }

    private struct State {
        var failures = 0
        /// How long the next opening lasts.
        var pause: Duration
        /// Not closed: until when everything is refused.
        var reopening: MonotonicInstant?
        /// A probe is under way; it is given up for lost at that moment.
        var probeEnd: MonotonicInstant?
    }

    private let threshold: Int
    private let firstPause: Duration
    private let longestPause: Duration
    private let state: Mutex<State>
    /// Closed and without a failure: what a busy store that works always is, asked without a lock.
    private let isCalm = Atomic<Bool>(true)

    /// - Parameters:
    ///   - threshold: Failures in a row that open it.
    ///   - firstPause: How long it is open the first time, give or take a fifth.
    ///   - longestPause: The pause doubles up to this.
    public init(
        threshold: Int = 5, firstPause: Duration = .seconds(1),
        longestPause: Duration = .seconds(10)
    ) {
        self.threshold = threshold
        self.firstPause = firstPause
        self.longestPause = longestPause
        state = Mutex(State(pause: firstPause))
    }

    /// Whether a claim may be made now.
    public func admit(at now: MonotonicInstant) -> Admission {
        if isCalm.load(ordering: .relaxed) { return .pass }
        return state.withLock { state in
            guard let reopening = state.reopening else { return .pass }
            if now < reopening { return .refuse }
            if let end = state.probeEnd, now < end { return .refuse }
            state.probeEnd = now.advanced(by: longestPause)
            return .probe
        }
    }

    /// The store answered. Of an open breaker only a probe's success means anything: the others
    /// were let pass long ago.
    public func succeeded(_ admission: Admission) {
        if isCalm.load(ordering: .relaxed) { return }
        state.withLock { state in
            if state.reopening == nil || admission == .probe { reset(&state) }
        }
    }

    /// The store did not answer, or not as it should.
    public func failed(_ admission: Admission, at now: MonotonicInstant) {
        state.withLock { state in
            isCalm.store(false, ordering: .relaxed)
            if state.reopening != nil && admission != .probe { return }
            state.failures += 1
            if state.failures < threshold && admission != .probe { return }
            // Loops and machines that saw the same failure do not come back in one moment.
            let jitter = Double.random(in: 0.8...1.2)
            state.reopening = now.advanced(by: state.pause * jitter)
            state.probeEnd = nil
            state.pause = min(state.pause * 2, longestPause)
        }
    }

    /// Whatever the probe was to find out, it did not: the next one tries again.
    public func forfeited(_ admission: Admission) {
        if admission == .probe { state.withLock { $0.probeEnd = nil } }
    }

    /// The store was seen at work by other means, so nothing is refused any more.
    public func recovered() {
        if isCalm.load(ordering: .relaxed) { return }
        state.withLock { reset(&$0) }
    }

    /// What it does with claims at `now`.
    public func state(at now: MonotonicInstant) -> BreakerState {
        state.withLock { state in
            guard let reopening = state.reopening else { return .closed }
            return now < reopening ? .open : .halfOpen
        }
    }

    private func reset(_ state: inout State) {
        state = State(pause: firstPause)
        isCalm.store(true, ordering: .relaxed)
    }
}
