internal import Reactor

/// How many frames that move nothing a peer may still send: a bucket that fills with time and with
/// what is useful. Work never empties it, and a flood of cheap frames does in a moment (pitfall W9).
struct FrameBudget {
    private let capacity: Int
    private let nanosecondsPerFrame: Int64
    private var left: Int
    private var filledAt: MonotonicInstant

    init(capacity: Int, perSecond: Int, now: MonotonicInstant) {
        self.capacity = capacity
        nanosecondsPerFrame = 1_000_000_000 / Int64(max(1, perSecond))
        left = capacity
        filledAt = now
    }

    /// Takes one frame out.
    ///
    /// - Returns: false when there is none left: the peer sends too many.
    mutating func spend(at now: MonotonicInstant) -> Bool {
        if left == 0 { fill(now) }
        if left == 0 { return false }
        left -= 1
        return true
    }

    /// Puts one frame back in: something useful came of the connection.
    mutating func earn() {
        left = min(capacity, left + 1)
    }

    private mutating func fill(_ now: MonotonicInstant) {
        let elapsed = max(0, now.nanoseconds &- filledAt.nanoseconds)
        left = Int(min(Int64(capacity), elapsed / nanosecondsPerFrame))
        if left > 0 { filledAt = now }
    }
}
