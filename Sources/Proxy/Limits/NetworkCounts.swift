internal import Policy
internal import Synchronization

/// How many connections each network has. A network without any takes no memory, so strangers cannot
/// fill the table beyond what their connections cost anyway.
final class NetworkCounts: Sendable {
    // Loops that accept at once hardly ever meet; a lock is held for a look into a table.
    private final class Shard: Sendable {
        let counts = Mutex<[IPAddress: Int]>([:])
    }

    private static let shardCount = 16
    private let shards = (0..<shardCount).map { _ in Shard() }

    /// Counts one connection more of `network`, unless it has `limit` of them.
    ///
    /// - Returns: false when it has.
    func add(_ network: IPAddress, limit: Int) -> Bool {
        shard(of: network).counts.withLock { counts in
            let count = counts[network] ?? 0
            if count >= limit { return false }
            counts[network] = count + 1
            return true
        }
    }

    /// Counts one less.
    func remove(_ network: IPAddress) {
        shard(of: network).counts.withLock { counts in
            guard let count = counts[network] else { return }
            counts[network] = count > 1 ? count - 1 : nil
        }
    }

    /// Networks that have connections.
    var networkCount: Int { shards.reduce(0) { $0 + $1.counts.withLock { $0.count } } }

    private func shard(of network: IPAddress) -> Shard {
        shards[Int(truncatingIfNeeded: network.hashValue & (Self.shardCount - 1))]
    }
}
