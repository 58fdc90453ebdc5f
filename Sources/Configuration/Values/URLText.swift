/// Just enough of RFC 3986 to check where keys come from.
struct URLText {
    /// Lower case.
    let scheme: String
    /// A name or an IP literal, without brackets.
    let host: String
    let port: UInt16?
    /// Path and query as written, perhaps empty.
    let rest: String

    /// Splits an absolute URL. The whole text must be printable ASCII, without user and fragment.
    init(_ text: String) throws(Misspelling) {
        guard let separator = text.firstRange(of: "://") else {
            throw Misspelling("is not a URL: \(quoted(redacted(text)))")
        }
        scheme = text[..<separator.lowerBound].lowercased()
        let behind = text[separator.upperBound...]
        if !text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x5C && $0 != 0x22 }) {
            throw Misspelling("has characters that a URL cannot have: \(quoted(redacted(text)))")
        }
        if behind.contains("#") {
            throw Misspelling("must not have a fragment: \(quoted(redacted(text)))")
        }
        let authority = behind.prefix { $0 != "/" && $0 != "?" }
        rest = String(behind[authority.endIndex...])
        if authority.contains("@") {
            throw Misspelling("must not have a user or password in it")
        }
        guard let (host, port) = Self.hostAndPort(authority) else {
            throw Misspelling("has no valid host and port: \(quoted(redacted(text)))")
        }
        self.host = host
        self.port = port
    }

    private static func hostAndPort(_ authority: Substring) -> (String, UInt16?)? {
        var host = authority
        var port: UInt16?
        if let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") {
            let digits = authority[authority.index(after: colon)...]
            guard digits.utf8.allSatisfy(isDigit), let number = UInt16(digits), number > 0
            else { return nil }
            port = number
            host = authority[..<colon]
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
            return host.contains(":") && AddressText.isLiteral(String(host))
                ? (String(host), port) : nil
        }
        return HostText.isName(host) ? (host.lowercased(), port) : nil
    }
}

/// A URL without what may be secret in it: user, password and query.
public func redacted(_ url: String) -> String {
    var shown = url[...]
    if let query = shown.firstIndex(of: "?") { shown = shown[..<query] + "?…" }
    guard let end = shown.lastIndex(of: "@") else { return String(shown) }
    let start = shown.firstRange(of: "://")?.upperBound ?? shown.startIndex
    return start < end ? String(shown[..<start]) + "…" + shown[end...] : String(shown)
}
