internal import Policy

/// The buckets of some clients of a limit: open addressing with linear probing, 16 bytes a slot.
///
/// A bucket that is full again is as good as none, and the only one that is ever given up: nobody
/// gets a new bucket by making others come. Whatever comes, one charge costs no more than a walk
/// through 128 KiB, or moving 4096 buckets.
struct BucketShard {
    /// How a charge went.
    enum Charge: Equatable {
        case taken
        /// There is nothing in the bucket for so many nanoseconds.
        case refused(Int64)
        /// The client has no bucket, and there is no room for one.
        case noRoom
    }

    private struct Slot {
        /// 0 in an empty slot.
        var key: UInt64 = 0
        /// When the bucket is full again, nanoseconds.
        var full: Int64 = 0
    }

    /// What a shard holds at most: half of its slots, so that walks stay short.
    static let largestCapacity = 4096
    private static let smallestSlotCount = 16
    /// Slots that a client without a bucket has looked at for one that is full again.
    private static let glances = 16

    private let capacity: Int
    private var slots: [Slot] = []
    private(set) var count = 0
    /// Where the next such look begins.
    private var hand = 0

    /// - Parameter capacity: Buckets at most, 1 to `largestCapacity`.
    init(capacity: Int) {
        self.capacity = min(max(capacity, 1), Self.largestCapacity)
    }

    /// What the slots take at most.
    static func byteCount(forCapacity capacity: Int) -> Int {
        slotCount(for: capacity) * MemoryLayout<Slot>.stride
    }

    /// Takes a token from the bucket of a client.
    ///
    /// - Parameters:
    ///   - key: Not 0, and as good as random.
    ///   - now: Nanoseconds.
    mutating func charge(_ key: UInt64, _ bucket: TokenBucket, at now: Int64) -> Charge {
        if let place = position(of: key) {
            return bucket.take(from: &slots[place].full, at: now).map(Charge.refused) ?? .taken
        }
        guard makeRoom(at: now) else { return .noRoom }
        var full = now
        if let wait = bucket.take(from: &full, at: now) { return .refused(wait) }
        place(Slot(key: key, full: full))
        count += 1
        return .taken
    }

    /// How a charge would go, without one.
    func inspect(_ key: UInt64, _ bucket: TokenBucket, at now: Int64) -> Charge {
        if let place = position(of: key) {
            return bucket.wait(slots[place].full, at: now).map(Charge.refused) ?? .taken
        }
        return count < capacity ? .taken : .noRoom
    }

    /// Gives up the buckets that are full again, and the memory of a busy hour.
    mutating func purge(at now: Int64) {
        var position = 0
        while position < slots.count {
            if isSpare(position, at: now) {
                // What moves into this slot is looked at next.
                empty(position)
            } else {
                position += 1
            }
        }
        // Not at the first chance, or tables would grow and shrink with each tide.
        if slots.count > Self.smallestSlotCount, count * 16 < slots.count {
            rebuild(count == 0 ? 0 : Self.slotCount(for: count * 2), at: now)
        }
    }

    private mutating func makeRoom(at now: Int64) -> Bool {
        if count < capacity {
            if Self.slotCount(for: count + 1) > slots.count {
                rebuild(Self.slotCount(for: count + 1), at: now)
            }
            return true
        }
        for _ in 0..<Self.glances {
            if isSpare(hand, at: now) {
                empty(hand)
            } else {
                hand = (hand + 1) & (slots.count - 1)
            }
        }
        return count < capacity
    }

    private func isSpare(_ position: Int, at now: Int64) -> Bool {
        slots[position].key != 0 && slots[position].full <= now
    }

    /// A power of two, at least twice `count`.
    private static func slotCount(for count: Int) -> Int {
        var slotCount = smallestSlotCount
        while slotCount < count * 2 { slotCount *= 2 }
        return slotCount
    }

    @inline(__always)
    private func position(of key: UInt64) -> Int? {
        guard count > 0 else { return nil }
        let mask = slots.count - 1
        var position = home(key)
        while slots[position].key != 0 {
            if slots[position].key == key { return position }
            position = (position + 1) & mask
        }
        return nil
    }

    /// What stands behind an emptied slot moves up, unless its home is behind the hole: no
    /// tombstones to clean up.
    private mutating func empty(_ removed: Int) {
        let mask = slots.count - 1
        var hole = removed
        var position = (hole + 1) & mask
        while slots[position].key != 0 {
            let distance = (position &- home(slots[position].key)) & mask
            if distance >= (position &- hole) & mask {
                slots[hole] = slots[position]
                hole = position
            }
            position = (position + 1) & mask
        }
        slots[hole] = Slot()
        count -= 1
    }

    /// Moves what is not full again to so many slots.
    private mutating func rebuild(_ slotCount: Int, at now: Int64) {
        let old = slots
        slots = [Slot](repeating: Slot(), count: slotCount)
        hand = 0
        count = 0
        for slot in old where slot.key != 0 && slot.full > now {
            place(slot)
            count += 1
        }
    }

    private mutating func place(_ slot: Slot) {
        var position = home(slot.key)
        while slots[position].key != 0 { position = (position + 1) & (slots.count - 1) }
        slots[position] = slot
    }

    /// The highest bits chose the shard, the lowest is always set. `slots.count` is a power of two.
    @inline(__always)
    private func home(_ key: UInt64) -> Int {
        Int(truncatingIfNeeded: key >> 1) & (slots.count - 1)
    }
}
