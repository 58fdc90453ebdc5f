/// The chunked coding read in the plainest way: line by line from the whole body. It shares no code
/// with the decoder that it is held against.
struct ChunkedModel {
    private(set) var outcome = ChunkedInvariants.Outcome.malformed

    private let bytes: [UInt8]
    private var index = 0
    private var content: [UInt8] = []
    private var extensionBytes = 0

    private enum Step {
        case more, incomplete, malformed
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        while true {
            switch readSizeLine() {
            case (.malformed, _): return
            case (.incomplete, _):
                outcome = .incomplete(content: content)
                return
            case (.more, 0):
                outcome = readTrailers()
                return
            case (.more, let size):
                switch readContent(size) {
                case .malformed: return
                case .incomplete:
                    outcome = .incomplete(content: content)
                    return
                case .more: continue
                }
            }
        }
    }

    private mutating func readSizeLine() -> (Step, UInt64) {
        let line = bytes[index...].prefix { $0 != 0x0D && $0 != 0x0A }
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        let rest = line.dropFirst(digits.count)
        index += line.count
        let isEnded = index < bytes.count
        guard digits.count <= 16,
            digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit && $0 < 0x80 })
        else { return (.malformed, 0) }
        let size = UInt64(String(decoding: digits, as: UTF8.self), radix: 16)
        if let size, size > 1 << 53 { return (.malformed, 0) }
        if size == nil, isEnded || !rest.isEmpty { return (.malformed, 0) }
        if !rest.isEmpty, !mayBeExtension(rest, isEnded: isEnded) { return (.malformed, 0) }
        return (takeLineEnd(), size ?? 0)
    }

    private mutating func mayBeExtension(_ text: ArraySlice<UInt8>, isEnded: Bool) -> Bool {
        let count = text.count + (isEnded && bytes[index] == 0x0D ? 1 : 0)
        extensionBytes += count
        var isQuoted = false
        var isEscaped = false
        for byte in text {
            guard byte == 0x09 || (0x20...0x7E).contains(byte) else { return false }
            if isEscaped {
                isEscaped = false
            } else if byte == 0x22 {
                isQuoted.toggle()
            } else if byte == 0x5C {
                isEscaped = isQuoted
            }
        }
        return count <= 256 && extensionBytes <= 16 << 10 && !(isEnded && isQuoted)
    }

    private mutating func readContent(_ size: UInt64) -> Step {
        let available = min(size, UInt64(bytes.count - index))
        content += bytes[index..<(index + Int(available))]
        index += Int(available)
        return available < size ? .incomplete : takeLineEnd()
    }

    private mutating func takeLineEnd() -> Step {
        let end = bytes[index...].prefix(2)
        if !Array("\r\n".utf8).starts(with: end) { return .malformed }
        index += end.count
        return end.count == 2 ? .more : .incomplete
    }

    private mutating func readTrailers() -> ChunkedInvariants.Outcome {
        let start = index
        var trailers: [[[UInt8]]] = []
        var lines = 0
        while let lineFeed = bytes[index...].firstIndex(of: 0x0A) {
            let line = Array(bytes[index..<lineFeed])
            index = lineFeed + 1
            guard line.last == 0x0D, index - start <= 8 << 10 else { return .malformed }
            if line.count == 1 {
                return .complete(content: content, trailers: trailers, length: index)
            }
            lines += 1
            guard lines <= 64, let field = split(line.dropLast()) else { return .malformed }
            trailers.append(field)
        }
        return bytes.count - start > 8 << 10 ? .malformed : .incomplete(content: content)
    }

    private func split(_ line: ArraySlice<UInt8>) -> [[UInt8]]? {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex else {
            return nil
        }
        let name = String(decoding: line[..<colon], as: UTF8.self)
        var value = line[(colon + 1)...]
        let marks = "!#$%&'*+-.^_`|~"
        let isName = name.allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber || marks.contains($0))
        }
        guard isName, value.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else {
            return nil
        }
        while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
        return [Array(name.utf8), Array(value)]
    }
}
