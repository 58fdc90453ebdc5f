public import Configuration
public import Proxy
internal import Reactor
internal import Synchronization

/// The operations log: lines of the same shape as the access log, through the same writer.
///
/// Whatever a caller passes, a line is bounded, is one line, and holds nothing that looks like a
/// token (pitfall O5).
public final class EventLogger: EventLog {
    /// Fields of a line at most; further ones are left out.
    private static let fieldLimit = 8
    /// Bytes of a message or a value at most. Six times as many may be written, and all must fit a
    /// line.
    private static let textLimit = 512

    private let writer: LogWriter
    private let settings: Atomic<UInt8>
    private let now: @Sendable () -> Int64

    /// Makes a log that writes through `writer`.
    public convenience init(_ log: Log, writer: LogWriter) {
        self.init(log, writer: writer, now: { Syscalls.wallMicroseconds() })
    }

    /// Makes a log whose clock, microseconds since 1970, is `now`.
    init(_ log: Log, writer: LogWriter, now: @escaping @Sendable () -> Int64) {
        self.writer = writer
        self.now = now
        settings = Atomic(Self.encode(log))
    }

    /// Takes over the level and the format of a new configuration.
    public func adopt(_ log: Log) {
        settings.store(Self.encode(log), ordering: .relaxed)
    }

    public func log(
        _ level: Log.Level, _ message: String, _ fields: [(name: String, value: String)]
    ) {
        let settings = settings.load(ordering: .relaxed)
        guard Self.isEnabled(level, settings) else { return }
        var chunk = LogChunk()
        _ = chunk.appendLine { line in
            Self.append(
                level, message, fields, format: Self.format(settings), at: now(), to: &line)
        }
        writer.enqueue(&chunk, isUrgent: true)
    }

    /// The line that tells about lost lines, for a writer's `droppedReport`.
    public static func droppedReport(_ format: Log.Format) -> @Sendable (UInt64) -> [UInt8] {
        { lines in
            rendering(
                .warning, "log lines were dropped: the reader of the log is too slow or failed",
                [(name: "lines", value: String(lines))], format: format,
                at: Syscalls.wallMicroseconds())
        }
    }

    /// A line, with its line feed.
    static func rendering(
        _ level: Log.Level, _ message: String, _ fields: [(name: String, value: String)],
        format: Log.Format, at time: Int64
    ) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: LogChunk.maximumLine) { memory, count in
            // Safe: the writer is used only inside this closure, in which the memory is pinned.
            var line = LineWriter(UnsafeMutableRawBufferPointer(memory))
            append(level, message, fields, format: format, at: time, to: &line)
            line.append(byte: UInt8(ascii: "\n"))
            count = line.isOverflown ? 0 : line.count
        }
    }

    private static func append(
        _ level: Log.Level, _ message: String, _ fields: [(name: String, value: String)],
        format: Log.Format, at time: Int64, to line: inout LineWriter
    ) {
        var timestamp = Timestamp()
        line.begin(format, at: time, level: level, timestamp: &timestamp)
        line.field("msg", text: message, limit: textLimit, format)
        for (index, field) in fields.prefix(fieldLimit).enumerated() {
            // Two members of one name would leave it to the reader which one counts.
            let earlier = fields[..<index].contains { $0.name == field.name }
            if earlier || ["ts", "level", "msg"].contains(field.name) { continue }
            line.field(field.name, text: field.value, limit: textLimit, format)
        }
        line.end(format)
    }

    // Level in the low bits, format above: one load on the way of each event.
    private static func encode(_ log: Log) -> UInt8 {
        let level = UInt8(Log.Level.allCases.firstIndex(of: log.level) ?? 0)
        return log.format == .text ? level | 0x10 : level
    }

    private static func isEnabled(_ level: Log.Level, _ settings: UInt8) -> Bool {
        level <= Log.Level.allCases[Int(settings & 0x0F)]
    }

    private static func format(_ settings: UInt8) -> Log.Format {
        settings & 0x10 != 0 ? .text : .json
    }
}
