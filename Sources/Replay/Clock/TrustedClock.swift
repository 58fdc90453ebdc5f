internal import Reactor
internal import Synchronization

/// The clock that stores forget claims by: the wall clock, where that agrees with the time that
/// has really passed.
///
/// A wall clock can be set. If entries were purged by it, a clock that runs ahead for a minute
/// would forget every claim, and tokens that are valid once it is right again could be spent twice.
/// So this clock goes on from an anchor at the pace of the monotonic one:
/// - A wall clock behind it is believed at once: entries only live longer by that.
/// - A wall clock ahead of it is believed after it has stayed ahead for `settling`, and then as far
///   as its lowest reading in that time.
///
/// It is never ahead of any reading of the last `settling`, counted on from that reading.
public final class TrustedClock: Sendable {
    /// Longer than a limited-use token lives, so what is forgotten after a real step forward has
    /// expired by everybody's clock.
    public static let defaultSettling = Duration.seconds(3660)

    private let settling: Int64
    private let state: Mutex<State>

    /// - Parameters:
    ///   - now: The first reading; it is believed.
    ///   - settling: How long the wall clock has to stay ahead until it is believed.
    public init(now: ClaimInstant, settling: Duration = defaultSettling) {
        self.settling = settling.nanoseconds
        state = Mutex(State(offset: Self.offset(of: now)))
    }

    /// Takes a reading, and tells the time that claims may be forgotten by. Call it often: what
    /// the wall clock did between two readings is not known to it.
    ///
    /// - Returns: Seconds since 1970, never later than `at` says.
    public func trusted(_ at: ClaimInstant) -> Int64 {
        let offset = Self.offset(of: at)
        let trusted = state.withLock { state in
            state.take(offset, at: at.monotonic, settling: settling)
            return state.offset
        }
        return min((trusted &+ at.monotonic.nanoseconds / 1000) / 1_000_000, at.wallSeconds)
    }

    /// What the wall clock says more than the monotonic one, in microseconds: the same at every
    /// moment unless one of them is set. Both come from the kernel and are far from overflow.
    private static func offset(of instant: ClaimInstant) -> Int64 {
        instant.wallMicroseconds &- instant.monotonic.nanoseconds / 1000
    }

    private struct State {
        /// How far the wall clock may be ahead without being doubted, in microseconds. Small
        /// corrections are common, and so small that no token outlives its entry by them.
        static let tolerance: Int64 = 2_000_000

        var offset: Int64
        /// Since when all readings were ahead, and the lowest of them.
        var ahead: (since: MonotonicInstant, lowest: Int64)?

        mutating func take(_ reading: Int64, at instant: MonotonicInstant, settling: Int64) {
            if reading < offset { offset = reading }
            guard reading &- offset > Self.tolerance else {
                ahead = nil
                return
            }
            let since = ahead?.since ?? instant
            let lowest = min(ahead?.lowest ?? reading, reading)
            guard instant.nanoseconds &- since.nanoseconds >= settling else {
                ahead = (since, lowest)
                return
            }
            offset = lowest
            ahead = nil
        }
    }
}
