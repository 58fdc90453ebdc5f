internal import Reactor

/// What a peer may still do that costs us something and moves nothing: frames, resets, and windows
/// that nothing we sent calls for (pitfall W9).
struct PeerAllowance {
    private var idleFrames: FrameBudget
    private var resets: FrameBudget
    private var windowUpdates = 256

    init(_ limits: HTTP2Limits, now: MonotonicInstant) {
        idleFrames = FrameBudget(
            capacity: limits.idleFrames, perSecond: limits.idleFramesPerSecond, now: now)
        resets = idleFrames
    }

    /// A frame came that moves nothing.
    ///
    /// - Returns: false when there were too many.
    mutating func spendIdleFrame(at now: MonotonicInstant) -> Bool {
        idleFrames.spend(at: now)
    }

    /// A frame moved content: another one that does not is no flood.
    mutating func earnIdleFrame() {
        idleFrames.earn()
    }

    /// A stream was reset by the peer, or because of what it did.
    ///
    /// - Returns: false when there were too many.
    mutating func spendReset(at now: MonotonicInstant) -> Bool {
        resets.spend(at: now)
    }

    /// A stream came to its end.
    mutating func earnReset() {
        resets.earn()
    }

    /// What we sent makes the peer open windows; so many frames of that kind are its right.
    mutating func earnWindowUpdates() {
        windowUpdates = min(windowUpdates + 4, 4096)
    }

    /// Whether a WINDOW_UPDATE is among those that our content called for.
    mutating func spendWindowUpdate() -> Bool {
        if windowUpdates == 0 { return false }
        windowUpdates -= 1
        return true
    }
}
