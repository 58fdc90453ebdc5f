import Reactor
import Replay

extension ClaimInstant {
    /// Seconds since 1970, with a monotonic clock that began then, and is ahead of it by `passed`.
    static func second(_ wall: Int64, passed: Int64 = 0) -> ClaimInstant {
        ClaimInstant(
            wallMicroseconds: wall * 1_000_000,
            monotonic: MonotonicInstant(nanoseconds: (wall + passed) * 1_000_000_000))
    }
}

extension Claim {
    /// A claim made at `at` for a token that was issued then and is accepted for 300 seconds.
    static func of(
        _ number: UInt64, at: ClaimInstant, issuedAt: Int64? = nil, retainedUntil: Int64? = nil
    ) -> Claim {
        Claim(
            key: ClaimKey(issuer: "test", tokenID: "\(number)"),
            issuedAt: issuedAt ?? at.wallSeconds,
            retainedUntil: retainedUntil ?? at.wallSeconds + 300, at: at)
    }
}
