/// What will happen in a simulation, by its time; what is due at the same time happens in the order in
/// which it was planned.
struct EventQueue {
    private struct Entry {
        let time: Int64
        let number: UInt64
        let action: () -> Void

        func comesBefore(_ other: Entry) -> Bool {
            time != other.time ? time < other.time : number < other.number
        }
    }

    /// A binary heap.
    private var heap: [Entry] = []
    private var count: UInt64 = 0

    /// When the next one is due; nil when nothing will happen.
    var nextTime: Int64? { heap.first?.time }

    /// Plans something; `time` is in nanoseconds of the simulation.
    mutating func plan(at time: Int64, _ action: @escaping () -> Void) {
        count += 1
        heap.append(Entry(time: time, number: count, action: action))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            if !heap[child].comesBefore(heap[parent]) { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    /// Takes the next one out, if it is due at `time`.
    mutating func next(dueAt time: Int64) -> (() -> Void)? {
        guard let first = heap.first, first.time <= time else { return nil }
        let last = heap.removeLast()
        if heap.isEmpty { return first.action }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].comesBefore(heap[least]) {
                least = child
            }
            if least == parent { return first.action }
            heap.swapAt(parent, least)
            parent = least
        }
    }

    /// Forgets everything.
    mutating func removeAll() {
        heap.removeAll()
    }
}
