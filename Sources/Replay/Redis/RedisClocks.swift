internal import Reactor
internal import Synchronization

/// The clock of a server, as seen from ours.
struct RedisServerClock {
    /// Milliseconds of its wall clock minus those of our monotonic clock; never too small.
    private let offset: Int64

    /// Learns from a reply to TIME.
    ///
    /// - Parameter sent: When it was asked: the latest moment that its clock can belong to is later.
    /// - Returns: nil when the reply is none.
    init?(_ reply: RedisReply, sent: MonotonicInstant) {
        guard reply.kind == .array, reply.elements.count == 2,
            let seconds = reply.elements[0].number, let micro = reply.elements[1].number,
            0...Self.latestSecond ~= seconds, 0..<1_000_000 ~= micro
        else { return nil }
        offset = seconds * 1000 + micro / 1000 - sent.nanoseconds / 1_000_000
    }

    private static let latestSecond: Int64 = 1 << 40

    /// Milliseconds since 1970 by the server's clock, at `now`; rather late than early.
    func milliseconds(at now: MonotonicInstant) -> Int64 {
        now.nanoseconds / 1_000_000 + offset
    }
}

/// When the entries of claims vanish, so that none does before its token is refused.
///
/// A server goes by its own clock. By that, an entry lives until the token's end and `margin`, and
/// longer when the server's clock is ahead of ours. So proxies whose clocks differ by less than
/// `margin` do not depend on each other, and the clock of a server that is behind may be set right.
/// When our clock goes back (or the server's leaps ahead), entries that we made earlier may be gone
/// before we refuse their tokens. Which ones is known from the skews of the last hour, the longest
/// that a token lives: those are refused.
final class RedisClaimEnds: Sendable {
    /// How much longer than its token an entry lives at least, in milliseconds.
    static let margin: Int64 = 5 * 60_000
    private static let minutes = 64
    private static let latestSecond: Int64 = 1 << 40

    /// The smallest skew that was used in a minute.
    private struct Skews {
        var smallest = [Int64](repeating: .max, count: minutes)
        var minute: Int64 = 0

        mutating func advance(to minute: Int64) {
            let passed = minute - self.minute
            if passed <= 0 { return }
            for index in 1...min(passed, Int64(minutes)) {
                smallest[Int((self.minute + index) % Int64(minutes))] = .max
            }
            self.minute = minute
        }

        mutating func note(_ skew: Int64) {
            let index = Int(minute % Int64(minutes))
            smallest[index] = min(smallest[index], skew)
        }
    }

    private let skews = Mutex(Skews())

    /// When the entry of a claim is to vanish, in milliseconds since 1970 by the server's clock.
    ///
    /// - Parameters:
    ///   - server: What the server's clock says at `now`, in milliseconds since 1970.
    ///   - wall: What ours says, likewise.
    func end(
        retainedUntil: Int64, server: Int64, wall: Int64, at now: MonotonicInstant
    ) -> Int64 {
        let skew = max(0, server - wall)
        skews.withLock { skews in
            skews.advance(to: Self.minute(now))
            skews.note(skew)
        }
        return Self.base(retainedUntil) + skew
    }

    /// Whether an entry of that end, made by us earlier, may have vanished.
    func mayBeForgotten(retainedUntil: Int64, server: Int64, at now: MonotonicInstant) -> Bool {
        let smallest = skews.withLock { skews in
            skews.advance(to: Self.minute(now))
            return skews.smallest.min() ?? .max
        }
        return server >= Self.base(retainedUntil) + (smallest == .max ? 0 : smallest)
    }

    private static func base(_ retainedUntil: Int64) -> Int64 {
        min(max(retainedUntil, 0), latestSecond) * 1000 + margin
    }

    private static func minute(_ now: MonotonicInstant) -> Int64 {
        now.nanoseconds / 60_000_000_000
    }
}
