/// Finds where a head ends, without looking at a byte twice however slowly it arrives.
///
/// It settles what must not wait for the rest of the head: a bare line feed, a head or request line
/// beyond its limit, bytes that cannot start a message.
struct HeadScanner: Sendable {
    /// Where the start line begins, behind empty lines that were skipped.
    private(set) var start = 0

    private var position = 0
    private var lineStart = 0
    private var emptyLines = 0

    /// RFC 9112, section 2.2 asks servers to skip "at least one" empty line before a request line.
    private static let emptyLinesAllowed = 2

    /// Looks for the blank line that ends a head.
    ///
    /// - Parameters:
    ///   - limit: Bytes of a whole head, skipped lines included.
    ///   - startLineLimit: Bytes of the start line with its CRLF.
    ///   - skipsEmptyLines: Whether empty lines may come first, as before requests.
    /// - Returns: The index behind the blank line, or nil when more bytes are needed.
    /// - Throws: `bareLineFeed`, `headTooLarge`, `targetTooLong`, `startLine`.
    @inline(__always)
    mutating func scan(
        _ bytes: Span<UInt8>, limit: Int, startLineLimit: Int, skipsEmptyLines: Bool
    ) throws(MalformedMessage) -> Int? {
        if position == 0, !bytes.isEmpty {
            try checkFirst(bytes[0])
        }
        let window = min(bytes.count, limit)
        while let lineFeed = bytes.firstLineFeed(from: position, to: window) {
            position = lineFeed &+ 1
            if lineStart == start, position &- start > startLineLimit {
                throw MalformedMessage(.targetTooLong)
            }
            guard lineFeed > lineStart, bytes[lineFeed &- 1] == 0x0D else {
                throw MalformedMessage(.bareLineFeed)
            }
            let isEmpty = lineFeed &- 1 == lineStart
            if isEmpty, lineStart != start { return position }
            if isEmpty {
                guard skipsEmptyLines, emptyLines < Self.emptyLinesAllowed else {
                    throw MalformedMessage(.startLine)
                }
                emptyLines &+= 1
                start = position
            }
            lineStart = position
        }
        position = max(position, window)
        if lineStart == start, position &- start > startLineLimit {
            throw MalformedMessage(.targetTooLong)
        }
        if bytes.count >= limit { throw MalformedMessage(.headTooLarge) }
        return nil
    }

    /// A TLS handshake or other foreign protocol is told at its first byte, not after a time-out.
    private func checkFirst(_ byte: UInt8) throws(MalformedMessage) {
        if byte != 0x0D, byte != 0x0A, !ByteSet.token.contains(byte) {
            throw MalformedMessage(.startLine)
        }
    }
}
