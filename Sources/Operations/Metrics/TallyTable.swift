internal import Synchronization

/// Three sums for each key that ever came, of one event loop.
///
/// All that a request adds to its route lies in half a cache line. Counters of their own for every
/// metric of a route would be as many lines, each of them cold when thousands of routes take turns;
/// and what never happened on a route takes no memory here.
///
/// Safe to be Sendable: `storage` and `count` are touched by the thread alone that adds. Readers get
/// the storage through the lock, and every word in it is atomic.
final class TallyTable: @unchecked Sendable {
    /// A key and what was added to it.
    struct Tally {
        let key: UInt64
        let sums: (UInt64, UInt64, UInt64)
    }

    private static let initialCapacity = 256

    private var storage: Storage
    private var count = 0
    private let published: Mutex<Storage>

    init() {
        let storage = Storage(capacity: Self.initialCapacity)
        self.storage = storage
        published = Mutex(storage)
    }

    /// Adds to the sums of a key. Only the thread that owns the table may do that.
    ///
    /// - Parameter key: Not 0.
    @inline(__always)
    func add(_ key: UInt64, _ first: UInt64, _ second: UInt64, _ third: UInt64) {
        let place = storage.place(of: key)
        if storage.isFree(place) {
            insert(key, first, second, third)
        } else {
            storage.add(place, first, second, third)
        }
    }

    /// All of them; any thread may ask.
    var all: [Tally] { published.withLock { $0 }.all }

    private func insert(_ key: UInt64, _ first: UInt64, _ second: UInt64, _ third: UInt64) {
        if (count + 1) * 2 > storage.capacity { grow() }
        count += 1
        let place = storage.place(of: key)
        storage.add(place, first, second, third)
        storage.take(place, key)
    }

    private func grow() {
        let larger = Storage(capacity: storage.capacity * 2)
        for tally in storage.all {
            let place = larger.place(of: tally.key)
            larger.add(place, tally.sums.0, tally.sums.1, tally.sums.2)
            larger.take(place, tally.key)
        }
        storage = larger
        published.withLock { $0 = larger }
    }
}

/// Open addressing with linear probing, at most half full. A place is four words: the key, 0 where
/// there is none, and the sums.
///
/// Safe to be Sendable: the words are atomic, and a key is stored behind its sums. A place computed
/// here is below `capacity`, so its words are inside the allocation.
private final class Storage: @unchecked Sendable {
    private static let wordsPerPlace = 4
    private static let cacheLine = 64

    /// A power of two.
    let capacity: Int
    private let shift: UInt64
    private let words: UnsafeMutablePointer<Atomic<UInt64>>

    init(capacity: Int) {
        self.capacity = capacity
        shift = UInt64(64 - capacity.trailingZeroBitCount)
        let count = capacity * Self.wordsPerPlace
        // Aligned, so that no place lies across two cache lines.
        words = UnsafeMutableRawPointer.allocate(
            byteCount: count * MemoryLayout<Atomic<UInt64>>.stride, alignment: Self.cacheLine
        ).bindMemory(to: Atomic<UInt64>.self, capacity: count)
        for index in 0..<count { (words + index).initialize(to: Atomic(0)) }
    }

    deinit {
        // Atomic words are trivial: there is nothing to deinitialize.
        UnsafeMutableRawPointer(words).deallocate()
    }

    /// Where a key is, or where it belongs.
    @inline(__always)
    func place(of key: UInt64) -> Int {
        // Fibonacci hashing: keys are ours, so nobody can choose them to collide.
        var place = Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> shift)
        while true {
            let found = words[place &* Self.wordsPerPlace].load(ordering: .relaxed)
            if found == key || found == 0 { return place }
            place = (place &+ 1) & (capacity &- 1)
        }
    }

    @inline(__always)
    func isFree(_ place: Int) -> Bool {
        words[place &* Self.wordsPerPlace].load(ordering: .relaxed) == 0
    }

    /// Makes a key visible to readers.
    func take(_ place: Int, _ key: UInt64) {
        words[place &* Self.wordsPerPlace].store(key, ordering: .releasing)
    }

    /// A single writer needs no locked instruction.
    @inline(__always)
    func add(_ place: Int, _ first: UInt64, _ second: UInt64, _ third: UInt64) {
        let sums = words + (place &* Self.wordsPerPlace)
        Self.add(first, to: sums + 1)
        Self.add(second, to: sums + 2)
        Self.add(third, to: sums + 3)
    }

    @inline(__always)
    private static func add(_ amount: UInt64, to word: UnsafeMutablePointer<Atomic<UInt64>>) {
        word.pointee.store(
            word.pointee.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    var all: [TallyTable.Tally] {
        (0..<capacity).compactMap { place in
            let place = words + (place * Self.wordsPerPlace)
            let key = place.pointee.load(ordering: .acquiring)
            if key == 0 { return nil }
            return TallyTable.Tally(
                key: key,
                sums: (
                    place[1].load(ordering: .relaxed), place[2].load(ordering: .relaxed),
                    place[3].load(ordering: .relaxed)
                ))
        }
    }
}
