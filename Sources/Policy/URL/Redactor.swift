/// One pass over a target that finds what to redact.
struct Redactor {
    /// The next byte of the target to look at.
    private var position = 0
    /// A raw "?" or "#" has passed, so values end at "&".
    private var isInQuery = false

    mutating func redact(
        _ target: Span<UInt8>, to output: inout [UInt8], _ writer: inout RedactedWriter
    ) {
        if let range = userInformation(target) {
            writer.redact(target, range, to: &output)
            position = range.upperBound
        }
        while position < target.count, !writer.isFull(upTo: position, output) {
            redactPiece(target, to: &output, &writer)
        }
    }

    /// A piece is what lies between two separators: a path segment, the name or the value of a
    /// parameter.
    private mutating func redactPiece(
        _ target: Span<UInt8>, to output: inout [UInt8], _ writer: inout RedactedWriter
    ) {
        let start = position
        var end = start
        var next = start
        var separator: UInt8 = 0
        while end < target.count {
            let byte = DecodedByte(target, fullyAt: end)
            next = byte.end
            if Self.isSeparator(byte.value) {
                separator = byte.value
                break
            }
            end = next
        }
        if end - start >= TokenRun.shortestToken, let token = token(in: target, start..<end) {
            writer.redact(target, token, to: &output)
        }
        position = next
        guard separator != 0 else { return }
        if target[end] == UInt8(ascii: "?") || target[end] == UInt8(ascii: "#") { isInQuery = true }
        if separator == UInt8(ascii: "="), isSecretName(target, start..<end) {
            let value = position..<valueEnd(target)
            writer.redact(target, value, to: &output)
            position = value.upperBound
        }
    }

    private func token(in target: Span<UInt8>, _ range: Range<Int>) -> Range<Int>? {
        var run = TokenRun()
        var place = range.lowerBound
        while place < range.upperBound {
            let byte = DecodedByte(target, fullyAt: place)
            run.append(byte.value, from: place)
            place = byte.end
        }
        run.finish(at: range.upperBound)
        return run.token
    }

    private func isSecretName(_ target: Span<UInt8>, _ range: Range<Int>) -> Bool {
        var name = ParameterName()
        var place = range.lowerBound
        while place < range.upperBound {
            let byte = DecodedByte(target, fullyAt: place)
            name.append(byte.value)
            name.noteWords()
            place = byte.end
        }
        return name.isSecret
    }

    /// Where a secret ends: where no reader can still take bytes for a part of it.
    private func valueEnd(_ target: Span<UInt8>) -> Int {
        var end = position
        while end < target.count {
            let isEnd =
                switch target[end] {
                case UInt8(ascii: "&"): isInQuery
                case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"): !isInQuery
                default: false
                }
            if isEnd { break }
            end += 1
        }
        return end
    }

    /// What stands before "@" in `http://user:password@host/` and `user@host:443`.
    private func userInformation(_ target: Span<UInt8>) -> Range<Int>? {
        guard !target.isEmpty, target[0] != UInt8(ascii: "/") else { return nil }
        var start = 0
        var end = 0
        while end < target.count {
            let byte = target[end]
            if byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") { break }
            if byte == UInt8(ascii: "/") {
                let isBehindScheme =
                    start == 0 && end > 0 && target[end - 1] == UInt8(ascii: ":")
                    && end + 1 < target.count && target[end + 1] == byte
                guard isBehindScheme else { break }
                end += 1
                start = end + 1
            }
            end += 1
        }
        guard start < end else { return nil }
        for place in (start..<end).reversed() where target[place] == UInt8(ascii: "@") {
            return start..<place
        }
        return nil
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
}
