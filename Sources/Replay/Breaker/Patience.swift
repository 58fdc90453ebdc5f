internal import Reactor
internal import Synchronization

/// How long an enforced request waits for a remote store. A claim that was given less time, and had
/// no answer, says nothing about the store: monitored requests are in a hurry, and must not open the
/// breaker for enforced ones. One for all loops; a reload may change it.
final class Patience: Sendable {
    private let nanoseconds: Atomic<Int64>

    init(_ duration: Duration) {
        nanoseconds = Atomic(duration.nanoseconds)
    }

    /// Waits so long from now on.
    func adopt(_ duration: Duration) {
        nanoseconds.store(duration.nanoseconds, ordering: .relaxed)
    }

    /// Whether a claim that starts at `now` has that much time.
    func isGranted(until deadline: MonotonicInstant, at now: MonotonicInstant) -> Bool {
        now.advanced(byNanoseconds: nanoseconds.load(ordering: .relaxed)) <= deadline
    }
}
