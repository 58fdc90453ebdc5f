internal import Synchronization

/// Spans on their way from the event loops to the exporter: bounded, and never a reason to wait.
/// Spans that find no room are dropped and counted.
public final class SpanQueue: Sendable {
    /// Spans that are sent at once.
    static let batchLimit = 512
    /// Bytes of waiting spans for each that may wait: most measure a quarter of it.
    private static let bytesPerSpan = 4096

    /// Spans that are sent at once, as they stand in an array of JSON, each with a comma and a line
    /// feed behind it.
    struct Batch: Sendable {
        var bytes: [UInt8] = []
        var count = 0
    }

    private struct State {
        /// The oldest first.
        var batches: [Batch] = []
        var count = 0
        var bytes = 0
        /// How many may wait; 0 while nobody exports.
        var limit = 0
        /// The exporter was told that a batch is full.
        var isCalled = false
    }

    private let state = Mutex(State())
    private let dropped = Atomic<UInt64>(0)
    private let exported = Atomic<UInt64>(0)
    private let failed = Atomic<UInt64>(0)
    private let onFull = Mutex<(@Sendable () -> Void)?>(nil)

    /// A queue that takes nothing yet.
    public init() {}

    /// What became of the spans that were handed over: sent, not sent because nobody took them in
    /// time, or lost because too many waited.
    public var totals: (exported: UInt64, failed: UInt64, dropped: UInt64) {
        (
            exported.load(ordering: .relaxed), failed.load(ordering: .relaxed),
            dropped.load(ordering: .relaxed)
        )
    }

    /// Spans that wait.
    public var waiting: Int { state.withLock { $0.count } }

    /// Takes the spans of a chunk over, each a line that ends in a comma; it is empty afterwards.
    /// From any thread; never blocks on the exporter.
    func enqueue(_ chunk: inout LogChunk) {
        if chunk.isEmpty { return }
        let isFull = state.withLock { state in
            guard state.count + chunk.lines <= state.limit,
                state.bytes + chunk.count <= state.limit * Self.bytesPerSpan
            else {
                // Where nobody exports any more, nothing is missed.
                if state.limit > 0 { dropped.add(chunk.lines) }
                return false
            }
            Self.append(chunk, to: &state)
            if state.isCalled || state.count < min(Self.batchLimit, state.limit / 2 + 1) {
                return false
            }
            state.isCalled = true
            return true
        }
        chunk.removeAll()
        if isFull { onFull.withLock { $0 }?() }
    }

    private static func append(_ chunk: LogChunk, to state: inout State) {
        let last = state.batches.count - 1
        if last < 0 || state.batches[last].count + chunk.lines > batchLimit {
            state.batches.append(Batch())
        }
        let place = state.batches.count - 1
        let bytes = chunk.bytes
        bytes.withUnsafeBufferPointer { state.batches[place].bytes.append(contentsOf: $0) }
        state.batches[place].count += chunk.lines
        state.count += chunk.lines
        state.bytes += chunk.count
    }

    // MARK: The exporter's side

    /// Lets so many spans wait; with 0 those that do are lost.
    func open(limit: Int, onFull: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.limit = limit
            if limit == 0 { state = State() }
        }
        self.onFull.withLock { $0 = onFull }
    }

    /// The oldest spans; nil when none wait.
    func next() -> Batch? {
        state.withLock { state in
            state.isCalled = false
            if state.batches.isEmpty { return nil }
            let batch = state.batches.removeFirst()
            state.count -= batch.count
            state.bytes -= batch.bytes.count
            return batch
        }
    }

    /// Counts spans that a collector took.
    func countExported(_ count: Int) { exported.add(count) }

    /// Counts spans that no collector took.
    func countFailed(_ count: Int) { failed.add(count) }
}

extension Atomic<UInt64> {
    fileprivate func add(_ count: Int) {
        wrappingAdd(UInt64(clamping: count), ordering: .relaxed)
    }
}
