internal import Reactor

/// The descriptor behind the log, with what the writer must remember between writes.
struct LogOutput {
    private let descriptor: Int32
    /// A failure cut a line off; the next write must not glue itself to it.
    private var isMidLine = false
    /// The last write succeeded.
    private(set) var isHealthy = true

    /// What a pipe takes at once or not at all (PIPE_BUF, pipe(7)).
    private static let atomicBytes = 4096

    /// An output to an open descriptor, which stays the caller's.
    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// Writes whole lines, and waits as long as that takes.
    ///
    /// A failure (the reader is gone, the disk is full) is survived: the rest of these lines is
    /// lost, the next ones are tried again.
    ///
    /// - Returns: how many lines were lost; a line that was written in part counts.
    mutating func write(_ lines: Span<UInt8>) -> Int {
        CrashLine.setLogBusy(true)
        defer { CrashLine.setLogBusy(isMidLine) }
        if isMidLine {
            let lineFeed: InlineArray<1, UInt8> = [UInt8(ascii: "\n")]
            if writeAll(lineFeed.span) == 0 { return fail(lines) }
            isMidLine = false
        }
        let written = writeAll(lines)
        if written < lines.count {
            isMidLine = written > 0 ? lines[written - 1] != UInt8(ascii: "\n") : isMidLine
            return fail(lines.extracting(written...))
        }
        isHealthy = true
        return 0
    }

    /// Writes whole lines where another process writes, too: in pieces that do not tear each other's
    /// lines, unless one is longer than a pipe takes at once.
    ///
    /// - Returns: as `write` does.
    mutating func writeInPieces(_ lines: Span<UInt8>) -> Int {
        var lost = 0
        var begin = 0
        while begin < lines.count {
            let end = Self.pieceEnd(lines, from: begin)
            lost += write(lines.extracting(begin..<end))
            begin = end
        }
        return lost
    }

    /// Where a piece ends that begins at `begin`: behind as many lines as fit, and behind one at
    /// least.
    private static func pieceEnd(_ lines: Span<UInt8>, from begin: Int) -> Int {
        var end = begin
        for index in begin..<lines.count where lines[index] == UInt8(ascii: "\n") {
            if end > begin && index + 1 - begin > atomicBytes { break }
            end = index + 1
        }
        return end > begin ? end : lines.count
    }

    private mutating func fail(_ rest: Span<UInt8>) -> Int {
        isHealthy = false
        var lines = 0
        for index in rest.indices where rest[index] == UInt8(ascii: "\n") { lines += 1 }
        return lines
    }

    /// - Returns: how many bytes the kernel took before it refused; all of them, ordinarily.
    private func writeAll(_ bytes: Span<UInt8>) -> Int {
        var written = 0
        while written < bytes.count {
            do throws(Errno) {
                let count = try bytes.extracting(written...).withUnsafeBytes {
                    bytes throws(Errno) in try Syscalls.write(descriptor, bytes)
                }
                // Nothing written and no error would repeat for ever.
                if count == 0 { return written }
                written += count
            } catch {
                // Somebody else may have made the descriptor that we inherited non-blocking.
                if error != .wouldBlock { return written }
                Syscalls.waitWritable(descriptor, milliseconds: 1000)
            }
        }
        return written
    }
}
