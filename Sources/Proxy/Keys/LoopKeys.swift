internal import Reactor

/// The keys that one loop verifies with, and its requests that wait for others.
final class LoopKeys {
    /// How long an enforced request may wait for keys that are being fetched.
    static let patience = Duration.seconds(2)
    private static let refetchPause = Duration.seconds(30)
    private static let waiterLimit = 256

    /// Every project's keys, in the order of the configuration.
    private(set) var snapshot: KeySnapshot
    private let loop: EventLoop
    private let requestRefetch: @Sendable (String) -> Void
    private var waiters: [Waiter] = []
    private var refetches: [Int: Refetch] = [:]

    /// A refetch of a project's keys that this loop asked for.
    private struct Refetch {
        let askedAt: MonotonicInstant
        let attemptsBefore: UInt64
    }

    /// - Parameter requestRefetch: Asks for a project's keys, by its name; returns at once.
    init(
        _ snapshot: KeySnapshot, loop: EventLoop,
        requestRefetch: @escaping @Sendable (String) -> Void
    ) {
        self.snapshot = snapshot
        self.loop = loop
        self.requestRefetch = requestRefetch
    }

    /// Verifies with these keys from now on, unless those in use are newer or the configuration
    /// changed meanwhile.
    func adopt(_ next: KeySnapshot) {
        if snapshot.isReplaced(by: next) { replace(with: next) }
    }

    /// Verifies with these keys from now on, which may be those of another configuration.
    func replace(with next: KeySnapshot) {
        snapshot = next
        let woken = waiters
        waiters.removeAll()
        for waiter in woken { waiter.wake() }
    }

    /// The projects are other ones now.
    func forgetRefetches() {
        refetches.removeAll()
    }

    /// Asks for a project's keys again, unless this loop did a short while ago (pitfall K3).
    ///
    /// - Returns: whether an answer to the question is still to come.
    func refetch(_ project: Int, named name: String) -> Bool {
        if let refetch = refetches[project],
            loop.now < refetch.askedAt.advanced(by: Self.refetchPause)
        {
            return attempts(project) == refetch.attemptsBefore
                && loop.now < refetch.askedAt.advanced(by: Self.patience)
        }
        refetches[project] = Refetch(askedAt: loop.now, attemptsBefore: attempts(project))
        requestRefetch(name)
        return true
    }

    /// How often an attempt to get a project's keys has ended.
    func attempts(_ project: Int) -> UInt64 {
        snapshot.sets.indices.contains(project) ? snapshot.sets[project].attempts : 0
    }

    /// Wakes `waiter` at the next snapshot; false when too many wait already.
    func awaitNext(_ waiter: Waiter) -> Bool {
        if waiters.count >= Self.waiterLimit { return false }
        if !waiters.contains(where: { $0 === waiter }) { waiters.append(waiter) }
        return true
    }
}
