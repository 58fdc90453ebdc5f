public import Reactor
internal import Synchronization

/// Claims in this process's memory, shared by its loops; they end with it.
///
/// The keys are spread over shards of about 2,500 claims. What a claim can cost is bounded by that:
/// no table ever grows by more than a shard, and nobody waits for a lock longer than that takes.
public final class MemoryStore: ClaimStore {
    /// Claims in a shard when the store is full. Shards differ by chance, by 50 either way; that
    /// one reaches a table's capacity is twenty times as far off.
    private static let claimsPerShard = 2560
    private static let fewestShards = 64
    /// Shards that one call of `purge` goes through: half a millisecond if all of it has expired.
    private static let shardsPerPurge = 8

    public let reliableSince: Int64
    private let entryLimit: Int
    private let shards: [ClaimShard]
    private let entries = Atomic<Int>(0)
    private let slotBytes = Atomic<Int>(0)
    private let clock: TrustedClock
    private let round = Mutex(PurgeRound())

    /// An empty store.
    ///
    /// - Parameters:
    ///   - entryLimit: Claims that are remembered at most; exact. The memory grows with what is in
    ///     it, to 39 bytes for each of these (`StoreStatistics.byteLimit`).
    ///   - now: What was issued before is not known to it.
    ///   - settling: How long a clock that was set forward is doubted.
    public init(
        entryLimit: Int, now: ClaimInstant, settling: Duration = TrustedClock.defaultSettling
    ) {
        self.entryLimit = max(entryLimit, 0)
        let count = max(self.entryLimit / Self.claimsPerShard + 1, Self.fewestShards)
        shards = (0..<count).map { _ in ClaimShard() }
        clock = TrustedClock(now: now, settling: settling)
        reliableSince = now.wallSeconds + 1
    }

    public var name: StaticString { "memory" }
    public var needsToken: Bool { false }
    public var isRemote: Bool { false }

    public func makeSession(on loop: EventLoop) -> any ClaimSession { MemorySession(self) }

    public func purge(at now: ClaimInstant) -> Bool {
        let trusted = clock.trusted(now)
        return round.withLock { round in
            round.begin(trusted, shardCount: shards.count)
            for _ in 0..<min(Self.shardsPerPurge, round.left) {
                purge(shards[round.next(shardCount: shards.count)], at: trusted)
            }
            return round.left > 0
        }
    }

    public var statistics: StoreStatistics {
        let largest = ClaimTable.byteCount(forEntries: entryLimit) + ClaimShard.overheadBytes
        return StoreStatistics(
            entries: entries.load(ordering: .relaxed), entryLimit: entryLimit,
            bytes: slotBytes.load(ordering: .relaxed) + shards.count * ClaimShard.overheadBytes,
            byteLimit: shards.count * largest)
    }

    /// Claims, atomically.
    func claim(_ claim: borrowing Claim) -> ClaimOutcome {
        let (key, retainedUntil) = (claim.key, claim.retainedUntil)
        let insertion = shard(of: key).table.withLock { table in
            let answer = table.answer(to: key, retainedUntil: retainedUntil)
            guard answer == .done else { return answer }
            guard reserve() else { return .isFull }
            let before = table.byteCount
            table.insert(key, retainedUntil: retainedUntil)
            note(table.byteCount - before)
            return .done
        }
        return outcome(of: insertion, issuedAt: claim.issuedAt)
    }

    /// Takes a claim back.
    ///
    /// - Returns: whether it was there; when it was purged, its token has expired.
    func release(_ key: ClaimKey) -> Bool {
        let isRemoved = shard(of: key).table.withLock { $0.remove(key) }
        if isRemoved { entries.subtract(1, ordering: .relaxed) }
        return isRemoved
    }

    /// What `claim` would answer.
    func inspect(_ claim: borrowing Claim) -> ClaimOutcome {
        let (key, retainedUntil) = (claim.key, claim.retainedUntil)
        var answer = shard(of: key).table.withLock {
            $0.answer(to: key, retainedUntil: retainedUntil)
        }
        if answer == .done, entries.load(ordering: .relaxed) >= entryLimit { answer = .isFull }
        return outcome(of: answer, issuedAt: claim.issuedAt)
    }

    private func outcome(of insertion: ClaimTable.Insertion, issuedAt: Int64) -> ClaimOutcome {
        switch insertion {
        case .done: issuedAt < reliableSince ? .predates : .claimed
        case .isKnown: .reused
        case .isForgotten: .expired
        case .isFull: .full
        }
    }

    /// The key's high half, as a fraction of all there are.
    @inline(__always)
    private func shard(of key: ClaimKey) -> ClaimShard {
        // Always below the count, being a fraction of it.
        shards[Int(truncatingIfNeeded: key.high.multipliedFullWidth(by: UInt64(shards.count)).high)]
    }

    /// Counts one entry more, unless that is one too many. Counting first and taking it back would
    /// refuse claims for which there is room.
    @inline(__always)
    private func reserve() -> Bool {
        var current = entries.load(ordering: .relaxed)
        while current < entryLimit {
            let (isExchanged, original) = entries.weakCompareExchange(
                expected: current, desired: current + 1, ordering: .relaxed)
            if isExchanged { return true }
            current = original
        }
        return false
    }

    private func purge(_ shard: ClaimShard, at trusted: Int64) {
        let purged = shard.table.withLock { table in
            let before = table.byteCount
            defer { note(table.byteCount - before) }
            return table.purge(at: trusted)
        }
        if purged > 0 { entries.subtract(purged, ordering: .relaxed) }
    }

    private func note(_ moreBytes: Int) {
        if moreBytes != 0 { slotBytes.add(moreBytes, ordering: .relaxed) }
    }
}

/// How far purging has come: once through all shards, and from wherever it is once more through all
/// of them when a new second begins.
private struct PurgeRound {
    private var second = Int64.min
    private var position = 0
    /// Shards that this round has not come to.
    private(set) var left = 0

    mutating func begin(_ now: Int64, shardCount: Int) {
        if now != second || left == 0 { left = shardCount }
        second = now
    }

    mutating func next(shardCount: Int) -> Int {
        left -= 1
        position = position + 1 < shardCount ? position + 1 : 0
        return position
    }
}
