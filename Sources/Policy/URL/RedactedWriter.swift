/// Writes a target from its start, and leaves out what is to be redacted.
struct RedactedWriter {
    let isVisible: Bool
    /// Where the output may end; what comes later is cut off anyway.
    let lastOutput: Int
    /// How much of the target is written, or left out.
    private var written = 0

    init(isVisible: Bool, lastOutput: Int) {
        self.isVisible = isVisible
        self.lastOutput = lastOutput
    }

    /// Whether bytes of the target behind `end` can no longer be seen.
    func isFull(upTo end: Int, _ output: [UInt8]) -> Bool {
        output.count + max(0, end - written) > lastOutput
    }

    /// Writes `[redacted]` in place of these bytes of the target.
    mutating func redact(_ target: Span<UInt8>, _ range: Range<Int>, to output: inout [UInt8]) {
        guard !range.isEmpty else { return }
        write(target, upTo: range.lowerBound, to: &output)
        output.append(contentsOf: Self.redacted)
        written = range.upperBound
    }

    /// Writes bytes as they are, others than visible ASCII percent-encoded.
    mutating func write(_ target: Span<UInt8>, upTo end: Int, to output: inout [UInt8]) {
        guard written < end else { return }
        // One byte too many shows the caller that there is more.
        let range = written..<min(end, written + max(0, lastOutput + 1 - output.count))
        written = end
        if isVisible {
            target.extracting(range).withUnsafeBufferPointer { output.append(contentsOf: $0) }
            return
        }
        for index in range {
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

    private static let redacted = Array("[redacted]".utf8)
}
