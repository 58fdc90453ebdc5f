internal import CHiredis
internal import Reactor

/// The words of one command, written by hiredis's formatter: each has its length in front, so no
/// word can be taken for another command.
struct RedisCommand {
    private var bytes: [UInt8] = []
    private var lengths: [Int] = []

    /// A command whose first words are fixed.
    init(_ words: StaticString...) {
        for word in words {
            word.withUTF8Buffer { bytes.append(contentsOf: $0) }
            lengths.append(word.utf8CodeUnitCount)
        }
    }

    /// The command with one more word.
    func adding(_ word: [UInt8]) -> RedisCommand {
        var command = self
        command.bytes.append(contentsOf: word)
        command.lengths.append(word.count)
        return command
    }

    /// The command with one more word.
    func adding(_ word: String) -> RedisCommand {
        adding(Array(word.utf8))
    }

    /// Writes the command behind what is in `buffer`.
    func append(to buffer: ByteBuffer) {
        var formatted: UnsafeMutablePointer<CChar>?
        let count = bytes.withUnsafeBytes { bytes in
            var offset = 0
            var words = lengths.map { length in
                defer { offset += length }
                return bytes.baseAddress?.advanced(by: offset).assumingMemoryBound(to: CChar.self)
            }
            return redisFormatCommandArgv(
                &formatted, Int32(truncatingIfNeeded: lengths.count), &words, lengths)
        }
        // No input leads here: a command is a few words of our own, and Swift's own allocations
        // trap as well.
        guard let formatted, count > 0 else { preconditionFailure("out of memory") }
        // Safe: hiredis wrote `count` bytes there, and they are copied before they are freed.
        let text = UnsafeBufferPointer(start: formatted, count: Int(count))
        text.withMemoryRebound(to: UInt8.self) { buffer.append($0.span) }
        redisFreeCommand(formatted)
    }
}
