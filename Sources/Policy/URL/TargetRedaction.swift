/// Writes request targets so that they may be logged (pitfalls H5, O5).
///
/// Replaced by `[redacted]` are: the values of parameters whose names tokens or other secrets go
/// by; runs that look like a JWT, in path and query; user information. It does not matter whether
/// any of this is percent-encoded, once or several times, or part of a URL inside a parameter. What
/// cannot be told apart is redacted rather than shown.
public enum TargetRedaction {
    /// Bytes that a logged target has at most, before "…".
    public static let longest = 2_048

    /// Appends the loggable form of a target. The outcome is ASCII without control characters, but
    /// for a final "…" when it was cut.
    ///
    /// - Parameters:
    ///   - target: As the client sent it, well formed or not.
    ///   - limit: Bytes to write before "…".
    public static func append(
        _ target: Span<UInt8>, to output: inout [UInt8], limit: Int = longest
    ) {
        let start = output.count
        if isPlain(target) {
            target.extracting(first: min(limit + 1, target.count)).withUnsafeBufferPointer {
                output.append(contentsOf: $0)
            }
        } else {
            var redactor = Redactor(position: 0, lastOutput: start + limit)
            redactor.redact(target, to: &output)
        }
        guard output.count - start > limit else { return }
        output.removeLast(output.count - start - limit)
        output.append(contentsOf: [0xe2, 0x80, 0xa6])
    }

    /// Whether there is certainly nothing to redact or to escape: most targets without a query.
    private static func isPlain(_ target: Span<UInt8>) -> Bool {
        guard !target.isEmpty, target[0] == UInt8(ascii: "/") else { return false }
        var dots = 0
        var previous: UInt8 = 0
        for index in target.indices {
            let byte = target[index]
            switch byte {
            case UInt8(ascii: "="), UInt8(ascii: "%"): return false
            case UInt8(ascii: "."): dots += 1
            case UInt8(ascii: "y") where previous == UInt8(ascii: "e"): return false
            case 0x21...0x7e: break
            default: return false
            }
            previous = byte
        }
        return dots < 2
    }
}

/// One pass over a target.
private struct Redactor {
    /// The next byte of the target to look at.
    var position: Int
    /// Where the output may end; what comes later is cut off anyway.
    let lastOutput: Int
    /// A raw "?" or "#" has passed, so values end at "&".
    private var isInQuery = false

    init(position: Int, lastOutput: Int) {
        self.position = position
        self.lastOutput = lastOutput
    }

    mutating func redact(_ target: Span<UInt8>, to output: inout [UInt8]) {
        redactUserInformation(target, to: &output)
        while position < target.count, output.count <= lastOutput {
            redactPiece(target, to: &output)
        }
    }

    /// A piece is what lies between two separators: a path segment, the name or the value of a
    /// parameter.
    private mutating func redactPiece(_ target: Span<UInt8>, to output: inout [UInt8]) {
        let start = position
        var name = ParameterName()
        var run = TokenRun()
        while position < target.count {
            let byte = DecodedByte(target, fullyAt: position)
            if Self.isSeparator(byte.value) {
                run.finish(at: position)
                write(target, start..<position, run, to: &output)
                write(target, position..<byte.end, to: &output)
                if target[position] == UInt8(ascii: "?") || target[position] == UInt8(ascii: "#") {
                    isInQuery = true
                }
                position = byte.end
                if byte.value == UInt8(ascii: "="), name.isSecret {
                    redactValue(target, to: &output)
                }
                return
            }
            name.append(byte.value)
            name.noteWords()
            run.append(byte.value, from: position)
            position = byte.end
        }
        run.finish(at: position)
        write(target, start..<position, run, to: &output)
    }

    /// A secret ends where no reader can still take bytes for a part of it.
    private mutating func redactValue(_ target: Span<UInt8>, to output: inout [UInt8]) {
        let start = position
        while position < target.count {
            let byte = target[position]
            let isEnd =
                isInQuery
                ? byte == UInt8(ascii: "&")
                : byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?")
                    || byte == UInt8(ascii: "#")
            if isEnd { break }
            position += 1
        }
        if position > start { Self.writeRedacted(to: &output) }
    }

    /// In `http://user:password@host/` and `user@host:443`.
    private mutating func redactUserInformation(_ target: Span<UInt8>, to output: inout [UInt8]) {
        guard target.count > 0, target[0] != UInt8(ascii: "/") else { return }
        var start = 0
        var end = 0
        while end < target.count {
            let byte = target[end]
            if byte == UInt8(ascii: "/") {
                let isScheme =
                    start == 0 && end > 0 && target[end - 1] == UInt8(ascii: ":")
                    && end + 1 < target.count && target[end + 1] == byte
                guard isScheme else { break }
                end += 1
                start = end + 1
            } else if byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") {
                break
            }
            end += 1
        }
        guard start < end else { return }
        for at in (start..<end).reversed() where target[at] == UInt8(ascii: "@") {
            write(target, 0..<start, to: &output)
            Self.writeRedacted(to: &output)
            position = at
            return
        }
    }

    /// What ends a name or a value for some reader, raw or encoded.
    @inline(__always)
    private static func isSeparator(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "="), UInt8(ascii: "&"), UInt8(ascii: ";"), UInt8(ascii: "?"),
            UInt8(ascii: "#"), UInt8(ascii: "/"):
            true
        default: false
        }
    }

    /// Writes a piece without the part that looks like a token.
    private func write(
        _ target: Span<UInt8>, _ range: Range<Int>, _ run: TokenRun, to output: inout [UInt8]
    ) {
        guard let token = run.token else { return write(target, range, to: &output) }
        write(target, range.lowerBound..<token.lowerBound, to: &output)
        Self.writeRedacted(to: &output)
        write(target, token.upperBound..<range.upperBound, to: &output)
    }

    /// Writes bytes as they are, others than visible ASCII percent-encoded.
    private func write(_ target: Span<UInt8>, _ range: Range<Int>, to output: inout [UInt8]) {
        for index in range {
            guard output.count <= lastOutput else { return }
            let byte = target[index]
            if byte > 0x20 && byte < 0x7f {
                output.append(byte)
            } else {
                output.append(UInt8(ascii: "%"))
                output.append(Self.digit(byte >> 4))
                output.append(Self.digit(byte & 15))
            }
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    private static func writeRedacted(to output: inout [UInt8]) {
        output.append(contentsOf: redacted)
    }

    private static let redacted = Array("[redacted]".utf8)
}
