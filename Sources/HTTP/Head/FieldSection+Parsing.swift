extension FieldSection {
    /// Reads field lines up to and with the blank line (RFC 9112, section 5).
    ///
    /// - Parameters:
    ///   - bytes: A head whose end was found, and what follows it.
    ///   - start: Index of the first field line.
    ///   - limit: Field lines allowed.
    ///   - kind: Whether the lines belong to a request or a response.
    /// - Returns: The index behind the blank line.
    /// - Throws: `fieldName`, `fieldValue`, `obsoleteFold`, `tooManyFields`.
    @inline(__always)
    mutating func parse(
        _ bytes: Span<UInt8>, from start: Int, limit: Int, of kind: MessageKind
    ) throws(MalformedMessage) -> Int {
        var index = start
        while true {
            var colon = bytes.endOfPlainName(from: index)
            guard colon < bytes.count else { throw MalformedMessage(.fieldName) }
            let isPlain = bytes[colon] == 0x3A
            if !isPlain {
                if colon == index, bytes.isLineEnd(at: index) { return index &+ 2 }
                if colon == index, bytes[colon].isBlank { throw MalformedMessage(.obsoleteFold) }
                colon = bytes.endOfToken(from: colon)
            }
            guard colon > index, colon < bytes.count, bytes[colon] == 0x3A else {
                throw MalformedMessage(.fieldName)
            }
            if lines.count >= limit { throw MalformedMessage(.tooManyFields) }
            let lineEnd = bytes.endOfText(from: colon &+ 1)
            guard bytes.isLineEnd(at: lineEnd) else { throw MalformedMessage(.fieldValue) }
            let name = ByteRange(start: index, count: colon &- index)
            let known =
                isPlain
                ? KnownField(plainName: bytes.slice(name))
                : KnownField(unusualName: bytes.slice(name), in: kind)
            append(
                FieldLine(
                    name: name, value: bytes.trimmed(from: colon &+ 1, to: lineEnd), known: known,
                    isHopByHop: known.isHopByHop))
            index = lineEnd &+ 2
        }
    }
}

/// Requests come from anybody, responses from backends that the operator chose.
enum MessageKind: Sendable {
    case request, response
}

extension Span where Element == UInt8 {
    /// Whether CRLF is at `index`.
    @inline(__always)
    func isLineEnd(at index: Int) -> Bool {
        index >= 0 && index < count &- 1 && self[index] == 0x0D && self[index &+ 1] == 0x0A
    }

    /// The range without the blanks at either end (RFC 9110, section 5.5).
    @inline(__always)
    func trimmed(from start: Int, to end: Int) -> ByteRange {
        var start = start
        var end = end
        while start < end, self[start].isBlank { start &+= 1 }
        while start < end, self[end &- 1].isBlank { end &-= 1 }
        return ByteRange(start: start, count: end &- start)
    }
}
