internal import Reactor

/// One loop's connections to the servers of a store.
final class RedisSession: ClaimSession {
    func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome
    {
        .unavailable(.unreachable)
    }

    func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool {
        false
    }

    func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome?
    {
        nil
    }

    func close() {}
}
