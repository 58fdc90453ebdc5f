internal import Configuration
internal import Reactor
public import Replay
internal import Synchronization

/// Whether the claim store answers, as all loops together see it: one line in the log when it stops
/// answering, and one when it answers again. What exactly is wrong with it is the store's own to
/// say.
final class StoreHealth: Sendable {
    /// How long after the last failure an answer is believed: a store that fails every other time
    /// is one that fails.
    private static let calm = Duration.seconds(5)

    private let store: String
    private let log: any EventLog
    private let isFailing = Atomic<Bool>(false)
    /// Nanoseconds on the monotonic clock.
    private let failedAt = Atomic<Int64>(0)

    init(_ store: any ClaimStore, log: any EventLog) {
        self.store = "\(store.name)"
        self.log = log
    }

    /// Takes note of what the store said.
    func note(_ outcome: ClaimOutcome, at now: MonotonicInstant) {
        switch outcome {
        case .unavailable(let failure): failed(failure.rawValue, at: now)
        case .full: failed("full", at: now)
        case .claimed, .reused, .predates, .expired, .refused, .unsupported: answered(at: now)
        }
    }

    private func failed(_ failure: String, at now: MonotonicInstant) {
        failedAt.store(now.nanoseconds, ordering: .relaxed)
        if isFailing.exchange(true, ordering: .relaxed) { return }
        log.log(
            .error, "the replay store cannot answer; when_unavailable decides about requests",
            [("store", store), ("failure", failure)])
    }

    private func answered(at now: MonotonicInstant) {
        // One load for each claim of a store that works.
        guard isFailing.load(ordering: .relaxed) else { return }
        let since = MonotonicInstant(nanoseconds: failedAt.load(ordering: .relaxed))
        if now < since.advanced(by: Self.calm) { return }
        guard isFailing.exchange(false, ordering: .relaxed) else { return }
        log.log(.info, "the replay store answers again", [("store", store)])
    }
}

extension EventLog {
    /// Writes what a store has to say.
    public func log(_ event: StoreEvent) {
        let level: Log.Level =
            switch event.severity {
            case .error: .error
            case .warning: .warning
            case .info: .info
            case .debug: .debug
            }
        log(level, event.message, event.fields)
    }
}
