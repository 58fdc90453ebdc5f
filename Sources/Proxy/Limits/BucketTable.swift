internal import Policy
internal import Synchronization

/// The buckets of all clients of a limit, shared by the loops of the process: the limit is one
/// number, however many loops there are.
///
/// Bounded: beyond `maxEntries` a client that has no bucket gets none of its own. It takes from one
/// that its neighbourhood shares, so whoever fills the table with the addresses of one network is
/// left with one bucket more, neither resets the buckets of others nor uses up those that strangers
/// share, and takes no memory (docs/decisions/0072-rate-limits.md).
final class BucketTable: Sendable {
    private static let sharedBuckets = 4096
    private static let fewestShards = 16
    /// Calls of `purge` that go through all shards.
    private static let purgeRound = 32

    /// What one bucket is.
    let bucket: TokenBucket
    /// Makes the keys.
    let hash: ClientHash
    /// How many clients are told apart at most.
    let maxEntries: Int
    private let shards: [Shard]
    private let shared = Mutex<[Int64]>([])
    private let sharedUses = Atomic<UInt64>(0)
    private let purged = Atomic<Int>(0)

    private final class Shard: Sendable {
        let buckets: Mutex<BucketShard>

        init(capacity: Int) { buckets = Mutex(BucketShard(capacity: capacity)) }
    }

    /// - Parameter maxEntries: At least one for each of 16 shards is kept.
    init(_ bucket: TokenBucket, networks: NetworkPrefixes, maxEntries: Int) {
        self.bucket = bucket
        hash = ClientHash(networks)
        var count = Self.fewestShards
        while count * BucketShard.largestCapacity < maxEntries { count *= 2 }
        let capacity = max(1, maxEntries / count)
        self.maxEntries = capacity * count
        shards = (0..<count).map { _ in Shard(capacity: capacity) }
    }

    /// Takes a token of a client's bucket.
    ///
    /// - Parameters:
    ///   - neighbourhood: Asked when the client cannot have a bucket.
    ///   - now: Nanoseconds on the monotonic clock.
    /// - Returns: nil when there was one, else for how many nanoseconds there is none.
    func charge(_ client: UInt64, at now: Int64, neighbourhood: () -> UInt64) -> Int64? {
        switch shard(of: client).buckets.withLock({ $0.charge(client, bucket, at: now) }) {
        case .taken: return nil
        case .refused(let wait): return wait
        case .noRoom:
            sharedUses.add(1, ordering: .relaxed)
            let place = Self.sharedPlace(neighbourhood())
            return shared.withLock { buckets in
                if buckets.isEmpty {
                    buckets = [Int64](repeating: .min, count: Self.sharedBuckets)
                }
                return bucket.take(from: &buckets[place], at: now)
            }
        }
    }

    /// What `charge` would answer; takes nothing.
    func inspect(_ client: UInt64, at now: Int64, neighbourhood: () -> UInt64) -> Int64? {
        switch shard(of: client).buckets.withLock({ $0.inspect(client, bucket, at: now) }) {
        case .taken: return nil
        case .refused(let wait): return wait
        case .noRoom:
            let place = Self.sharedPlace(neighbourhood())
            return shared.withLock { buckets in
                buckets.isEmpty ? nil : bucket.wait(buckets[place], at: now)
            }
        }
    }

    /// Gives up buckets that are full again, in a part of the table.
    func purge(at now: Int64) {
        let count = max(1, shards.count / Self.purgeRound)
        let first = purged.add(count, ordering: .relaxed).oldValue
        for offset in 0..<count {
            let place = Int(UInt(bitPattern: first &+ offset) % UInt(shards.count))
            shards[place].buckets.withLock { $0.purge(at: now) }
        }
    }

    /// Buckets in the table; those that are full again count until they are given up.
    var entries: Int { shards.reduce(0) { $0 + $1.buckets.withLock { $0.count } } }

    /// Charges that took from a shared bucket, since the table is there.
    var sharedCharges: UInt64 { sharedUses.load(ordering: .relaxed) }

    /// What the buckets of a table may take at most.
    static func byteLimit(maxEntries: Int) -> Int {
        var count = fewestShards
        while count * BucketShard.largestCapacity < maxEntries { count *= 2 }
        return count * BucketShard.byteCount(forCapacity: max(1, maxEntries / count))
            + sharedBuckets * MemoryLayout<Int64>.stride
    }

    @inline(__always)
    private func shard(of client: UInt64) -> Shard {
        // Always below the count, being a fraction of it.
        shards[Int(truncatingIfNeeded: client.multipliedFullWidth(by: UInt64(shards.count)).high)]
    }

    private static func sharedPlace(_ neighbourhood: UInt64) -> Int {
        Int(truncatingIfNeeded: neighbourhood >> 1) & (sharedBuckets - 1)
    }
}
