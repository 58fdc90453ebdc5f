public import Reactor
internal import Synchronization

/// Claims in this process's memory: they end with it.
public final class MemoryStore: ClaimStore {
    private let claims = Mutex<[ClaimKey: Int64]>([:])
    private let entryLimit: Int
    public let reliableSince: Int64

    /// An empty store.
    ///
    /// - Parameters:
    ///   - entryLimit: Claims that are remembered at most.
    ///   - now: What was issued before is not known to it.
    public init(entryLimit: Int, now: ClaimInstant) {
        self.entryLimit = entryLimit
        reliableSince = now.wallSeconds + 1
    }

    public var name: StaticString { "memory" }
    public var needsToken: Bool { false }
    public var isRemote: Bool { false }

    public func makeSession(on loop: EventLoop) -> any ClaimSession { Session(store: self) }

    public func purge(at now: ClaimInstant) -> Bool {
        claims.withLock { claims in claims = claims.filter { $0.value > now.wallSeconds } }
        return false
    }

    public var statistics: StoreStatistics {
        StoreStatistics(entries: claims.withLock { $0.count }, entryLimit: entryLimit)
    }

    private final class Session: ClaimSession {
        let store: MemoryStore

        init(store: MemoryStore) {
            self.store = store
        }

        func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
            -> ClaimOutcome
        {
            store.claims.withLock { claims in
                if claims[claim.key] != nil { return .reused }
                if claims.count >= store.entryLimit { return .full }
                claims[claim.key] = claim.retainedUntil
                return claim.issuedAt < store.reliableSince ? .predates : .claimed
            }
        }

        func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool
        {
            store.claims.withLock { $0[claim.key] = nil }
            return true
        }

        func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
            -> ClaimOutcome?
        {
            if store.claims.withLock({ $0[claim.key] != nil }) { return .reused }
            return claim.issuedAt < store.reliableSince ? .predates : .claimed
        }

        func close() {}
    }
}
