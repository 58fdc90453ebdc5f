/// The claims of one shard: open addressing with linear probing, 24 bytes a slot.
///
/// Keys are a part of a SHA-256, so their bits are as good as a hash of them. Whatever they are, a
/// table has at most 4096 slots, and so no claim can cost more than a walk through 96 KiB or moving
/// 2048 entries.
struct ClaimTable {
    /// What is wrong with another entry, or how it went.
    enum Insertion {
        case done, isKnown
        /// An entry like this one was purged already.
        case isForgotten
        /// The table is as large as it may be.
        case isFull
    }

    private struct Slot {
        static let empty = Slot(high: 0, low: 0, retainedUntil: .min)

        var high: UInt64
        var low: UInt64
        /// `Int64.min` marks an empty slot: no entry has it, being forgotten from the start.
        var retainedUntil: Int64
    }

    static let largestSlotCount = 4096
    /// What a table of that size holds at most, so that there are always empty slots to end a walk.
    static let capacity = largestSlotCount / 8 * 7
    private static let smallestSlotCount = 16

    private var slots: [Slot] = []
    private(set) var count = 0
    /// The highest `retainedUntil` of an entry that was purged, seconds since 1970.
    private var forgottenThrough = Int64.min
    /// No entry expires earlier.
    private var earliest = Int64.max

    /// What the slots take.
    var byteCount: Int { slots.count * MemoryLayout<Slot>.stride }

    static func byteCount(forEntries limit: Int) -> Int {
        slotCount(for: min(limit, capacity)) * MemoryLayout<Slot>.stride
    }

    /// What ``insert(_:retainedUntil:)`` would say.
    func answer(to key: ClaimKey, retainedUntil: Int64) -> Insertion {
        if isFound(key) { return .isKnown }
        // A clock that went back must not open again what was closed: the entry that said so may
        // have been purged (pitfall R4).
        if retainedUntil <= forgottenThrough { return .isForgotten }
        return count < Self.capacity ? .done : .isFull
    }

    /// Adds an entry after `answer` was `done`.
    mutating func insert(_ key: ClaimKey, retainedUntil: Int64) {
        let needed = Self.slotCount(for: count + 1)
        if needed > slots.count { rebuild(needed) }
        place(Slot(high: key.high, low: key.low, retainedUntil: retainedUntil))
        count += 1
        earliest = min(earliest, retainedUntil)
    }

    /// - Returns: whether it was there.
    mutating func remove(_ key: ClaimKey) -> Bool {
        guard let position = position(of: key) else { return false }
        empty(position)
        return true
    }

    /// Forgets what nobody accepts at `now` any more.
    ///
    /// - Returns: how many entries that were.
    mutating func purge(at now: Int64) -> Int {
        guard earliest <= now else { return 0 }
        let before = count
        earliest = .max
        var position = 0
        while position < slots.count {
            let retainedUntil = slots[position].retainedUntil
            if retainedUntil == .min {
                position += 1
            } else if retainedUntil <= now {
                forgottenThrough = max(forgottenThrough, retainedUntil)
                // What moves into this slot is looked at next.
                empty(position)
            } else {
                earliest = min(earliest, retainedUntil)
                position += 1
            }
        }
        // Memory of a busy hour goes back. Not at the first chance, or tables would grow and shrink
        // with each tide.
        let needed = Self.slotCount(for: count * 4)
        if needed < slots.count { rebuild(Self.slotCount(for: count * 2)) }
        return before - count
    }

    /// A power of two, so that `count` entries fill at most three quarters; no more than the
    /// largest.
    private static func slotCount(for count: Int) -> Int {
        var slotCount = smallestSlotCount
        while slotCount < largestSlotCount, slotCount / 4 * 3 < count { slotCount *= 2 }
        return slotCount
    }

    private func isFound(_ key: ClaimKey) -> Bool { position(of: key) != nil }

    @inline(__always)
    private func position(of key: ClaimKey) -> Int? {
        guard count > 0 else { return nil }
        let mask = slots.count - 1
        var position = home(key.low)
        while slots[position].retainedUntil != .min {
            if slots[position].low == key.low, slots[position].high == key.high { return position }
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
        while slots[position].retainedUntil != .min {
            let distance = (position &- home(slots[position].low)) & mask
            if distance >= (position &- hole) & mask {
                slots[hole] = slots[position]
                hole = position
            }
            position = (position + 1) & mask
        }
        slots[hole] = .empty
        count -= 1
    }

    private mutating func rebuild(_ slotCount: Int) {
        let old = slots
        slots = [Slot](repeating: .empty, count: slotCount)
        for slot in old where slot.retainedUntil != .min { place(slot) }
    }

    private mutating func place(_ slot: Slot) {
        var position = home(slot.low)
        while slots[position].retainedUntil != .min {
            position = (position + 1) & (slots.count - 1)
        }
        slots[position] = slot
    }

    /// The high half chose the shard, so the low half is still spread evenly.
    @inline(__always)
    private func home(_ low: UInt64) -> Int {
        Int(truncatingIfNeeded: low) & (slots.count - 1)
    }
}
