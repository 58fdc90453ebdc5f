/// Deadlines of one loop's waiters, in slots of 64 ms: a time-out may fire up to one slot late,
/// never early.
///
/// Deadlines move with every request, nearly always to a later time, and nearly never fire. So an
/// entry stays filed where it is until that slot comes up, and only then moves to where its
/// deadline is now.
struct TimerWheel {
    /// How long one slot is: the precision of every deadline.
    static let slotNanoseconds: Int64 = 64_000_000
    private static let slotCount = 512

    private var slots: [Waiter?] = Array(repeating: nil, count: slotCount)
    private var filedCount = 0
    /// The slot number up to which everything due has fired.
    private var current: Int64

    /// An empty wheel.
    init(now: MonotonicInstant) {
        current = now.nanoseconds / Self.slotNanoseconds
    }

    /// Files a waiter by its deadline; does nothing when it is filed early enough already.
    mutating func file(_ waiter: Waiter) {
        let due = dueSlot(waiter.deadline)
        if waiter.slot >= 0 {
            if filedDistance(waiter.slot) <= due - current { return }
            remove(waiter)
        }
        let slot = Int(due % Int64(Self.slotCount))
        waiter.slot = Int32(truncatingIfNeeded: slot)
        waiter.previous = nil
        waiter.next = slots[slot]
        waiter.next?.previous = waiter
        slots[slot] = waiter
        filedCount += 1
    }

    /// Takes a waiter out; does nothing when it is not filed.
    mutating func remove(_ waiter: Waiter) {
        if waiter.slot < 0 { return }
        if let previous = waiter.previous {
            previous.next = waiter.next
        } else {
            slots[Int(waiter.slot)] = waiter.next
        }
        waiter.next?.previous = waiter.previous
        waiter.next = nil
        waiter.previous = nil
        waiter.slot = -1
        filedCount -= 1
    }

    /// Moves what is due to `expired` and re-files what was only filed here. The caller expires it,
    /// when the wheel can be used again: who is woken may file and remove.
    mutating func advance(to now: MonotonicInstant, _ expired: inout [Waiter]) {
        let target = now.nanoseconds / Self.slotNanoseconds
        if filedCount == 0 {
            current = target
            return
        }
        // After a long sleep one turn of the wheel sees every slot.
        current = max(current, target - Int64(Self.slotCount))
        while current < target {
            current += 1
            fire(Int(current % Int64(Self.slotCount)), now, &expired)
        }
    }

    /// Milliseconds until the next slot that holds anything, or -1 when none does.
    func sleepMilliseconds(now: MonotonicInstant) -> Int32 {
        if filedCount == 0 { return -1 }
        for distance in 1...Int64(Self.slotCount)
        where slots[Int((current + distance) % Int64(Self.slotCount))] != nil {
            let due = (current + distance) * Self.slotNanoseconds - now.nanoseconds
            return Int32(clamping: max(1, due / 1_000_000 + 1))
        }
        return -1
    }

    private mutating func fire(
        _ slot: Int, _ now: MonotonicInstant, _ expired: inout [Waiter]
    ) {
        var entry = slots[slot]
        while let waiter = entry {
            entry = waiter.next
            if waiter.deadline == .never {
                remove(waiter)
            } else if waiter.deadline <= now {
                remove(waiter)
                expired.append(waiter)
            } else if dueSlot(waiter.deadline) - current < Int64(Self.slotCount) {
                remove(waiter)
                file(waiter)
            }
        }
    }

    /// The first slot at whose turn the deadline has passed; at least the next one.
    private func dueSlot(_ deadline: MonotonicInstant) -> Int64 {
        max(current + 1, deadline.nanoseconds / Self.slotNanoseconds + 1)
    }

    /// Slots from now until a filed slot's turn.
    private func filedDistance(_ slot: Int32) -> Int64 {
        let count = Int64(Self.slotCount)
        let distance = (Int64(slot) - current % count + count) % count
        return distance == 0 ? count : distance
    }
}
