/// Reads the trailer section of a chunked body (RFC 9112, section 7.1.2) byte by byte and keeps the
/// fields that may be forwarded.
struct TrailerReader: Sendable {
    /// Fields that passed, names as they came.
    private(set) var fields: [(name: [UInt8], value: [UInt8])] = []

    private var line: [UInt8] = []
    private var bytes = 0
    private var lines = 0

    private static let bytesAllowed = 8 << 10
    private static let linesAllowed = 64

    /// Takes the next byte.
    ///
    /// - Returns: true when the section is complete.
    /// - Throws: `trailer`, `bareLineFeed`.
    mutating func take(_ byte: UInt8) throws(MalformedMessage) -> Bool {
        bytes += 1
        if bytes > Self.bytesAllowed { throw MalformedMessage(.trailer) }
        line.append(byte)
        if byte != 0x0A { return false }
        guard line.span.isLineEnd(at: line.count - 2) else { throw MalformedMessage(.bareLineFeed) }
        if line.count == 2 {
            line = []
            return true
        }
        lines += 1
        if lines > Self.linesAllowed { throw MalformedMessage(.trailer) }
        try takeLine()
        line.removeAll(keepingCapacity: true)
        return false
    }

    private mutating func takeLine() throws(MalformedMessage) {
        guard let (name, value) = try splitLine() else { return }
        fields.append((Array(line[..<name]), Array(line[Int(value.start)..<value.end])))
    }

    /// - Returns: The length of the name and the range of the value, or nil for a field to drop.
    private func splitLine() throws(MalformedMessage) -> (name: Int, value: ByteRange)? {
        let text = line.span
        let colon = text.endOfToken(from: 0)
        guard colon > 0, text[colon] == 0x3A else { throw MalformedMessage(.trailer) }
        let valueEnd = text.endOfText(from: colon + 1)
        guard valueEnd == text.count - 2 else { throw MalformedMessage(.trailer) }
        if !Self.mayPass(text.extracting(0..<colon)) { return nil }
        return (colon, text.trimmed(from: colon + 1, to: valueEnd))
    }

    /// Whether a field may come after the body (RFC 9110, section 6.5.1; pitfall W8).
    ///
    /// What the proxy knows is about framing, routing, credentials or the proxy's own statements.
    /// The rest of the list controls how a message is processed or cached, which a backend that
    /// merges trailers into the head must not be told afterwards. Look-alikes fare like the real
    /// names.
    static func mayPass(_ name: Span<UInt8>) -> Bool {
        if name.endOfPlainName(from: 0) == name.count { return mayPass(plain: name) }
        var folded: [UInt8] = []
        for index in name.indices {
            folded.append(name[index].isAlphanumeric ? name[index] : 0x2D)
        }
        return mayPass(plain: folded.span)
    }

    private static func mayPass(plain name: Span<UInt8>) -> Bool {
        if KnownField(plainName: name) != .other { return false }
        if name.hasPrefix("content-") { return name.equals("content-digest") }
        if name.hasPrefix("if-") || name.hasPrefix("proxy-") { return false }
        if name.hasPrefix("access-control-") || name.hasPrefix("x-http-method") { return false }
        return
            !(name.equals("age") || name.equals("vary") || name.equals("range")
            || name.equals("pragma") || name.equals("expires") || name.equals("warning")
            || name.equals("location") || name.equals("set-cookie")
            || name.equals("retry-after") || name.equals("max-forwards")
            || name.equals("cache-control") || name.equals("www-authenticate")
            || name.equals("authentication-info"))
    }
}
