internal import Reactor

/// A loop's way to a memory store. Nothing in it waits.
final class MemorySession: ClaimSession {
    private let store: MemoryStore

    init(_ store: MemoryStore) {
        self.store = store
    }

    func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome
    {
        store.claim(claim)
    }

    func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool {
        store.release(claim.key)
    }

    func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome?
    {
        store.inspect(claim)
    }

    func close() {}
}
