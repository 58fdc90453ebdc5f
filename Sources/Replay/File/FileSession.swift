internal import Reactor

/// A loop's way to the file: straight into it. Nothing here ever suspends.
final class FileSession: ClaimSession {
    private let store: FileStore

    init(store: FileStore) {
        self.store = store
    }

    func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome
    {
        store.claim(claim)
    }

    func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool {
        store.release(claim)
    }

    func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome?
    {
        store.inspect(claim)
    }

    func close() {}
}
