public import Reactor
internal import Synchronization

/// Writes log lines to a descriptor, on a thread of its own, so that a slow reader of the log never
/// slows an event loop down.
///
/// Loops hand over chunks of lines; that takes a short lock and no system call while the writer is
/// busy or resting. When the reader falls behind, lines are kept up to a bound; beyond it they are
/// dropped and counted, and a line says how many as soon as there is room again.
///
/// The process must ignore SIGPIPE (`Syscalls.ignoreWriteSignals`), or the end of the log's reader
/// is the end of the process.
public final class LogWriter: Sendable {
    /// Bytes of lines that wait at most.
    public static let defaultBacklog = 8 << 20

    /// How long the writer lets lines gather after it wrote some; it bounds both how late a line is
    /// and how often a busy process wakes the writer.
    private static let rest = Duration.milliseconds(50)
    /// Gathered bytes that end the rest early.
    private static let eager = 256 << 10
    /// Empty chunks that are kept for the next hand-over.
    private static let spares = 16

    private struct State {
        /// Chunks in the order in which they came.
        var waiting: [LogChunk] = []
        var waitingBytes = 0
        /// Bytes that the writer took and has not written yet.
        var takenBytes = 0
        var empty: [LogChunk] = []
        var mood = Mood.awake
        var isClosing = false
    }

    /// What the writer's thread does, as far as it matters to those who hand lines over.
    private enum Mood {
        /// It will look for lines without being told.
        case awake
        /// It lets lines gather for a while: only urgent ones, or many, end that.
        case resting
        /// It sleeps until there is a line.
        case asleep
    }

    private enum Work {
        /// The chunks, the oldest one last.
        case write([LogChunk])
        case sleep
        case end
    }

    private let descriptor: Int32
    private let backlog: Int
    private let droppedReport: @Sendable (UInt64) -> [UInt8]
    private let state = Mutex(State())
    private let dropped = Atomic<UInt64>(0)
    private let errors = Atomic<UInt64>(0)
    private let sharing = Atomic<Bool>(false)
    private let wakeUps: EventDescriptor
    private let ended: EventDescriptor

    /// Makes a writer; nothing is written before `start()`.
    ///
    /// - Parameters:
    ///   - descriptor: Where lines go; it is not closed.
    ///   - backlog: Bytes of lines that wait at most.
    ///   - droppedReport: Makes the line (with its line feed) that says how many lines were lost.
    /// - Throws: when the system has no descriptor left.
    public init(
        descriptor: Int32 = 1, backlog: Int = defaultBacklog,
        droppedReport: @escaping @Sendable (UInt64) -> [UInt8]
    ) throws(Errno) {
        self.descriptor = descriptor
        self.backlog = backlog
        self.droppedReport = droppedReport
        wakeUps = try EventDescriptor()
        ended = try EventDescriptor()
    }

    /// Lines lost so far, because the reader was too slow or the descriptor failed.
    public var droppedLines: UInt64 { dropped.load(ordering: .relaxed) }

    /// Failed writes so far: the reader is gone, the disk is full.
    public var writeErrors: UInt64 { errors.load(ordering: .relaxed) }

    /// Whether another process writes to the same descriptor, so that lines need care to stay whole.
    public func share(_ isShared: Bool) {
        sharing.store(isShared, ordering: .relaxed)
    }

    /// Starts the writer's thread.
    ///
    /// - Returns: false when the system has no thread left.
    public func start() -> Bool {
        Thread.start(named: "log") { self.run() }
    }

    /// Takes the lines of `chunk` over; it is empty afterwards. Callable from any thread; never
    /// blocks on the reader.
    ///
    /// - Parameter isUrgent: Wakes the writer even while it gathers: for lines that explain a
    ///   failure.
    public func enqueue(_ chunk: inout LogChunk, isUrgent: Bool = false) {
        if chunk.isEmpty { return }
        let mustWake = state.withLock { state in
            take(&chunk, into: &state)
            let wakes =
                switch state.mood {
                case .awake: false
                case .resting: isUrgent || state.waitingBytes >= Self.eager
                case .asleep: true
                }
            if wakes { state.mood = .awake }
            return wakes
        }
        if mustWake { wakeUps.signal() }
    }

    /// Counts a line that never got as far as a chunk.
    func countDroppedLine() {
        dropped.wrappingAdd(1, ordering: .relaxed)
    }

    /// Writes what waits, then ends the thread. Lines that come later are dropped.
    ///
    /// - Returns: false when `timeLimit` passed first; what was not written by then may be lost.
    public func shutDown(timeLimit: Duration) -> Bool {
        state.withLock { $0.isClosing = true }
        wakeUps.signal()
        return ended.wait(atMost: timeLimit)
    }

    private func take(_ chunk: inout LogChunk, into state: inout State) {
        if state.isClosing || state.waitingBytes + state.takenBytes + chunk.count > backlog {
            dropped.wrappingAdd(UInt64(chunk.lines), ordering: .relaxed)
            chunk.removeAll()
            return
        }
        state.waitingBytes += chunk.count
        // Small hand-overs share a chunk, so that the bound on bytes bounds the memory, too.
        if let last = state.waiting.indices.last, state.waiting[last].append(chunk) {
            chunk.removeAll()
            return
        }
        var replacement = state.empty.popLast() ?? LogChunk()
        swap(&replacement, &chunk)
        state.waiting.append(replacement)
    }

    // MARK: The writer's thread

    private func run() {
        var output = LogOutput(descriptor: descriptor)
        var reported: UInt64 = 0
        while true {
            switch nextWork() {
            case .write(var chunks):
                while let chunk = chunks.popLast() { write(chunk, to: &output) }
                reportDropped(since: &reported, to: &output)
                rest()
            case .sleep:
                wakeUps.wait()
            case .end:
                ended.signal()
                return
            }
        }
    }

    private func nextWork() -> Work {
        state.withLock { state in
            if !state.waiting.isEmpty {
                var chunks: [LogChunk] = []
                swap(&chunks, &state.waiting)
                // Taken from the end, a chunk leaves the array as the only owner of its memory.
                chunks.reverse()
                state.takenBytes = state.waitingBytes
                state.waitingBytes = 0
                state.mood = .awake
                return .write(chunks)
            }
            if state.isClosing { return .end }
            state.mood = .asleep
            return .sleep
        }
    }

    private func write(_ chunk: LogChunk, to output: inout LogOutput) {
        var chunk = chunk
        let length = chunk.count
        let isShared = sharing.load(ordering: .relaxed)
        let lost = isShared ? output.writeInPieces(chunk.bytes) : output.write(chunk.bytes)
        if lost > 0 {
            dropped.wrappingAdd(UInt64(lost), ordering: .relaxed)
            errors.wrappingAdd(1, ordering: .relaxed)
        }
        chunk.removeAll()
        state.withLock { state in
            state.takenBytes -= length
            if state.empty.count < Self.spares { state.empty.append(chunk) }
        }
    }

    private func reportDropped(since reported: inout UInt64, to output: inout LogOutput) {
        let lost = droppedLines
        guard lost > reported, output.isHealthy else { return }
        if output.write(droppedReport(lost - reported).span) == 0 { reported = lost }
    }

    private func rest() {
        let rests = state.withLock { state in
            if state.isClosing || state.waitingBytes >= Self.eager { return false }
            state.mood = .resting
            return true
        }
        if rests { wakeUps.wait(atMost: Self.rest) }
    }
}
