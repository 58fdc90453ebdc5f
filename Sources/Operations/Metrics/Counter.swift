internal import Synchronization

/// A number that only grows, written by one thread and read by any.
///
/// With a single writer a load and a store suffice: no locked instruction on the event loop.
struct Counter: ~Copyable, Sendable {
    private let value = Atomic<UInt64>(0)

    /// Adds `amount`. Only the thread that owns the counter may do that.
    @inline(__always)
    func add(_ amount: UInt64 = 1) {
        value.store(value.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    /// The number as far as this thread sees it.
    var total: UInt64 { value.load(ordering: .relaxed) }
}

/// A number that goes up and down, written by one thread and read by any.
struct Gauge: ~Copyable, Sendable {
    private let value = Atomic<Int>(0)

    /// Adds `amount`, which may be negative. Only the thread that owns the gauge may do that.
    @inline(__always)
    func add(_ amount: Int) {
        value.store(value.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    /// The number as far as this thread sees it.
    var level: Int { value.load(ordering: .relaxed) }
}

/// One counter for each word of a closed set.
final class WordCounters<Word: CaseIterable & RawRepresentable & Equatable>: Sendable
where Word.RawValue == String, Word.AllCases == [Word] {
    /// More than any of our sets has; a test compares.
    static var capacity: Int { 64 }

    private let cells = InlineArray<64, Counter> { _ in Counter() }

    /// Counts one.
    func count(_ word: Word) {
        guard let index = Word.allCases.firstIndex(of: word), index < Self.capacity else { return }
        cells[index].add()
    }

    /// How often `word` was counted.
    func total(_ word: Word) -> UInt64 {
        guard let index = Word.allCases.firstIndex(of: word), index < Self.capacity else {
            return 0
        }
        return cells[index].total
    }
}
