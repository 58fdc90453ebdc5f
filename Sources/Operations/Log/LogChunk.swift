/// Finished log lines on their way to the writer: a fixed piece of memory that an event loop fills
/// and hands over, and that comes back empty.
///
/// A chunk holds whole lines only, each ending in a line feed.
public struct LogChunk: Sendable {
    /// Bytes that a chunk holds.
    static let capacity = 64 << 10
    /// Bytes that one line may measure, its line feed included; every field has its own, smaller
    /// bound, so that no request can come near it.
    static let maximumLine = 32 << 10

    private var storage = [UInt8](repeating: 0, count: capacity)
    /// Bytes of finished lines.
    private(set) var count = 0
    /// Finished lines.
    private(set) var lines = 0

    /// Makes an empty chunk; this is where its memory is allocated.
    public init() {}

    /// Whether no line is in it.
    var isEmpty: Bool { count == 0 }

    /// Whether any line whatsoever fits.
    var hasRoomForLine: Bool { storage.count - count >= Self.maximumLine }

    /// The finished lines.
    var bytes: Span<UInt8> {
        @_lifetime(borrow self)
        get { storage.span.extracting(first: count) }
    }

    /// Appends the line that `body` writes, and its line feed.
    ///
    /// - Returns: false when the line did not fit; the chunk is then as it was before.
    mutating func appendLine(_ body: (inout LineWriter) -> Void) -> Bool {
        let start = count
        let end: Int? = storage.withUnsafeMutableBytes { memory in
            // Safe: the writer is used only inside this closure, in which the memory is pinned.
            var line = LineWriter(UnsafeMutableRawBufferPointer(rebasing: memory[start...]))
            body(&line)
            line.append(byte: UInt8(ascii: "\n"))
            return line.isOverflown ? nil : start + line.count
        }
        guard let end else { return false }
        count = end
        lines += 1
        return true
    }

    /// Appends all lines of another chunk.
    ///
    /// - Returns: false when they do not fit; then nothing was appended.
    mutating func append(_ other: borrowing LogChunk) -> Bool {
        let length = other.count
        if storage.count - count < length { return false }
        let start = count
        storage.withUnsafeMutableBytes { target in
            other.storage.withUnsafeBytes { source in
                UnsafeMutableRawBufferPointer(rebasing: target[start..<(start + length)])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<length]))
            }
        }
        count += length
        lines += other.lines
        return true
    }

    /// Forgets the lines; the memory stays.
    mutating func removeAll() {
        count = 0
        lines = 0
    }
}
