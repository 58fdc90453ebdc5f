/// From hashes to slots: open addressing with linear probing, at most half full.
struct SlotIndex {
    private struct Bucket {
        /// 0 in an empty bucket.
        var hash: UInt64 = 0
        var slot = 0
    }

    private var buckets = [Bucket](repeating: Bucket(), count: 64)
    private var count = 0

    /// The first slot under `hash` that `isWanted`, or nil.
    @inline(__always)
    func first(_ hash: UInt64, where isWanted: (Int) -> Bool) -> Int? {
        var position = home(hash)
        while buckets[position].hash != 0 {
            if buckets[position].hash == hash, isWanted(buckets[position].slot) {
                return buckets[position].slot
            }
            position = next(position)
        }
        return nil
    }

    /// Adds a slot.
    ///
    /// - Parameter hash: Not 0.
    mutating func insert(_ hash: UInt64, slot: Int) {
        if (count + 1) * 2 > buckets.count { grow() }
        place(Bucket(hash: hash, slot: slot))
        count += 1
    }

    /// Removes a slot that was added with `hash`.
    mutating func remove(_ hash: UInt64, slot: Int) {
        var hole = home(hash)
        while buckets[hole].hash != hash || buckets[hole].slot != slot {
            if buckets[hole].hash == 0 { return }
            hole = next(hole)
        }
        count -= 1
        // What stands behind moves up, unless its home is behind the hole: no tombstones to clean
        // up.
        var position = next(hole)
        while buckets[position].hash != 0 {
            let distance = (position &- home(buckets[position].hash)) & (buckets.count - 1)
            if distance >= (position &- hole) & (buckets.count - 1) {
                buckets[hole] = buckets[position]
                hole = position
            }
            position = next(position)
        }
        buckets[hole] = Bucket()
    }

    private mutating func grow() {
        let old = buckets
        buckets = [Bucket](repeating: Bucket(), count: old.count * 2)
        for bucket in old where bucket.hash != 0 { place(bucket) }
    }

    private mutating func place(_ bucket: Bucket) {
        var position = home(bucket.hash)
        while buckets[position].hash != 0 { position = next(position) }
        buckets[position] = bucket
    }

    /// The bits above the lowest, which is always set. `buckets.count` is a power of two.
    @inline(__always)
    private func home(_ hash: UInt64) -> Int {
        Int(truncatingIfNeeded: hash >> 1) & (buckets.count - 1)
    }

    @inline(__always)
    private func next(_ position: Int) -> Int { (position + 1) & (buckets.count - 1) }
}
