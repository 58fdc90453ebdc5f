internal import HTTP
internal import Reactor

extension FieldSection {
    /// Copies the lines that pass to another head. They are byte against byte in theirs, so neighbours
    /// that pass go out in one copy.
    ///
    /// - Parameter bytes: The head that the section was read from.
    @inline(__always)
    func copy(from bytes: Span<UInt8>, to out: ByteBuffer, where passes: (FieldLine) -> Bool) {
        var start = 0
        var end = 0
        for line in lines where passes(line) {
            if Int(line.name.start) != end {
                out.append(bytes.extracting(start..<end))
                start = Int(line.name.start)
            }
            end = Self.end(of: line, bytes)
        }
        out.append(bytes.extracting(start..<end))
    }

    /// The index behind a line's CRLF: white space may stand before it, and nothing else.
    private static func end(of line: FieldLine, _ bytes: Span<UInt8>) -> Int {
        var index = line.value.end
        while bytes[index] != UInt8(ascii: "\n") { index += 1 }
        return index + 1
    }
}
