extension Version {
    /// Bytes of every version.
    static let length = 8

    /// Reads the version at `start` (RFC 9112, section 2.3).
    ///
    /// - Throws: `version` for any version but 1.0 and 1.1, `startLine` when no version is there.
    @inline(__always)
    init(_ bytes: Span<UInt8>, at start: Int) throws(MalformedMessage) {
        if bytes.hasExactPrefix("HTTP/1.1", at: start) {
            self = .http11
        } else if bytes.hasExactPrefix("HTTP/1.0", at: start) {
            self = .http10
        } else {
            throw MalformedMessage(Self.isVersion(bytes, at: start) ? .version : .startLine)
        }
    }

    private static func isVersion(_ bytes: Span<UInt8>, at start: Int) -> Bool {
        guard bytes.hasExactPrefix("HTTP/", at: start), start <= bytes.count - length else {
            return false
        }
        return bytes[start + 5].isDigit && bytes[start + 6] == 0x2E && bytes[start + 7].isDigit
    }
}
