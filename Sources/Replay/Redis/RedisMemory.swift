internal import Reactor
internal import Synchronization

/// Since when the servers of a store remember all claims. One for the process: what one loop learns
/// holds for all, and in a cluster for all masters, because slots move between them.
final class RedisMemory: Sendable {
    /// How far the clock of a proxy that set a marker may be ahead of ours before we go by when we
    /// saw the marker first.
    private static let tolerance: Int64 = 60

    private struct Epoch {
        var second: Int64
        /// When it was seen first.
        var seen: MonotonicInstant
    }

    private let epoch = Mutex<Epoch?>(nil)

    /// A server remembers since `second`.
    ///
    /// - Returns: whether that is news.
    @discardableResult
    func adopt(_ second: Int64, at now: MonotonicInstant) -> Bool {
        epoch.withLock { epoch in
            if let epoch, epoch.second >= second { return false }
            epoch = Epoch(second: second, seen: now)
            return true
        }
    }

    /// The second, since 1970, from which on tokens can be vouched for; 0 before any server was
    /// asked.
    ///
    /// A marker that lies in the future by our clock, because somebody's clock was wrong, does not
    /// count for longer than we have seen its memory last.
    ///
    /// - Parameter wall: Seconds since 1970, at `now`.
    func reliableSince(wall: Int64, at now: MonotonicInstant) -> Int64 {
        epoch.withLock { epoch in
            guard let epoch else { return 0 }
            let watched = now.microseconds(since: epoch.seen) / 1_000_000
            return min(epoch.second, wall - watched + 1 + Self.tolerance)
        }
    }

    /// As set by whoever set it, for the service that waits until then before it accepts requests.
    var since: Int64 { epoch.withLock { $0?.second ?? 0 } }
}
