internal import Reactor
internal import Synchronization

/// Since when the servers of a store remember all claims. One for the process: what one loop learns
/// holds for all, and in a cluster for all masters, because slots move between them.
final class RedisMemory: Sendable {
    /// How far, in seconds, the clock of whoever set a marker may be ahead of ours before we go by
    /// when we saw the marker first: as far as clocks of proxies may differ.
    private static let tolerance = RedisClaimEnds.margin / 1000
    /// The longest that a token lives: whatever was issued before we saw a marker has expired after
    /// that.
    private static let longestLife: Int64 = 3600
    /// One is the rule. More are kept only where clocks were wrong.
    private static let markerLimit = 16

    private struct Marker {
        let second: Int64
        /// When it was seen first.
        let seen: MonotonicInstant

        /// What it means by our clock.
        func since(wall: Int64, at now: MonotonicInstant) -> Int64 {
            min(second, wall &- now.secondsSince(seen) &+ 1 &+ RedisMemory.tolerance)
        }
    }

    private struct State {
        var markers: [Marker] = []
        /// The latest second that was ever answered, and when the marker came that led to it.
        var latest: Int64 = 0
        var latestSeen = MonotonicInstant(nanoseconds: 0)

        /// Never less than it was, whatever becomes of our clock, for as long as that matters.
        mutating func since(wall: Int64, at now: MonotonicInstant) -> Int64 {
            var since: Int64 = 0
            for marker in markers { since = max(since, marker.since(wall: wall, at: now)) }
            if now.secondsSince(latestSeen) >= RedisMemory.longestLife { return since }
            latest = max(latest, since)
            return latest
        }

        mutating func add(_ marker: Marker, wall: Int64, at now: MonotonicInstant) {
            markers.append(marker)
            if markers.count <= RedisMemory.markerLimit { return }
            let least = markers.indices.min {
                markers[$0].since(wall: wall, at: now) < markers[$1].since(wall: wall, at: now)
            }
            if let least { markers.remove(at: least) }
        }
    }

    private let state = Mutex(State())

    /// A server remembers since `second`.
    ///
    /// - Parameter wall: Seconds since 1970 by our clock, at `now`.
    /// - Returns: whether that is news.
    @discardableResult
    func adopt(_ second: Int64, wall: Int64, at now: MonotonicInstant) -> Bool {
        state.withLock { state in
            let before = state.since(wall: wall, at: now)
            // One that lies in the future counts from when it came, not from when it is read again.
            if second <= before || state.markers.contains(where: { $0.second == second }) {
                return false
            }
            let marker = Marker(second: second, seen: now)
            state.add(marker, wall: wall, at: now)
            let since = marker.since(wall: wall, at: now)
            if since <= before { return false }
            state.latest = since
            state.latestSeen = now
            return true
        }
    }

    /// A server remembers since `second`; a loop has just learnt it.
    func adopt(_ second: Int64, on loop: EventLoop) {
        adopt(second, wall: loop.wallMicroseconds / 1_000_000, at: loop.now)
    }

    /// The second, since 1970, from which on tokens can be vouched for; 0 before any server was
    /// asked.
    ///
    /// A marker that lies in the future by our clock, because somebody's clock was wrong, does not
    /// count for longer than we have seen its memory last. When it was ours that was wrong, and
    /// goes back, what was answered before holds on for the longest life of a token.
    ///
    /// - Parameter wall: Seconds since 1970, at `now`.
    func reliableSince(wall: Int64, at now: MonotonicInstant) -> Int64 {
        state.withLock { $0.since(wall: wall, at: now) }
    }

    /// As set by whoever set it, for the service that waits until then before it accepts requests.
    var since: Int64 { state.withLock { $0.markers.map(\.second).max() ?? 0 } }
}

extension MonotonicInstant {
    /// Whole seconds.
    fileprivate func secondsSince(_ earlier: MonotonicInstant) -> Int64 {
        microseconds(since: earlier) / 1_000_000
    }
}
