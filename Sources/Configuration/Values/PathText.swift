/// The paths that routes are chosen by.
enum PathText {
    /// Checks a route's `path`: exact, or a prefix that ends in "/*", in the one form that request
    /// paths are brought into before they are compared. Any other form would never match.
    static func pattern(_ text: String) throws(Misspelling) -> String {
        if !text.hasPrefix("/") {
            throw Misspelling(
                "must start with \"/\": \(quoted(text))",
                suggestion: text.contains("://") || text.hasPrefix("*") ? nil : "/" + text,
                hint: text == "*" ? "write \"/*\" for every path" : nil)
        }
        if text.utf8.count > 4096 {
            throw Misspelling("must not be longer than 4096 bytes")
        }
        if let end = text.firstIndex(where: { $0 == "?" || $0 == "#" }) {
            throw Misspelling(
                "must not have a query or fragment: \(quoted(text))",
                suggestion: String(text[..<end]), hint: "routes are chosen by the path alone")
        }
        let segments = text.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        if segments.dropLast().contains("") {
            let kept = segments.filter { !$0.isEmpty }.joined(separator: "/")
            throw Misspelling("must not contain \"//\": \(quoted(text))", suggestion: "/" + kept)
        }
        if segments.contains(".") || segments.contains("..") {
            throw Misspelling("must not contain dot segments: \(quoted(text))")
        }
        if text.contains(";") {
            throw Misspelling("must not contain path parameters: \(quoted(text))")
        }
        let withoutWildcard = text.hasSuffix("/*") ? text.dropLast() : text[...]
        if withoutWildcard.contains("*") {
            throw Misspelling(
                "may have \"*\" only as a final \"/*\": \(quoted(text))",
                hint: "\"/v1/*\" serves everything below /v1/")
        }
        try checkBytes(text)
        return text
    }

    private static func checkBytes(_ text: String) throws(Misspelling) {
        let bytes = Array(text.utf8)
        for (index, byte) in bytes.enumerated() {
            if byte == 0x25 {
                try checkEscape(bytes[index...].dropFirst().prefix(2), in: text)
            } else if byte <= 0x20 || byte >= 0x7F || Array("\"<>\\^`{|}".utf8).contains(byte) {
                let escaped = bytes.map(Self.escape).joined()
                throw Misspelling(
                    "has characters that a path cannot have: \(quoted(text))",
                    suggestion: text.contains("\\") || bytes.contains { $0 < 0x20 } ? nil : escaped)
            }
        }
    }

    /// An escape stays in normal form only when it is upper case and stands for a byte that must be
    /// escaped.
    private static func checkEscape(
        _ digits: ArraySlice<UInt8>, in text: String
    ) throws(Misspelling) {
        let spelling = String(decoding: digits, as: UTF8.self)
        guard digits.count == 2, let byte = UInt8(spelling, radix: 16), !spelling.hasPrefix("+")
        else {
            throw Misspelling("has a broken escape: \(quoted(text))")
        }
        if isUnreserved(byte) {
            throw Misspelling(
                "must not escape what needs no escape: \(quoted(text))",
                suggestion: normalised(text))
        }
        if byte == 0x2F || byte == 0x5C || byte < 0x20 || byte == 0x7F {
            throw Misspelling(
                "can never match: \(quoted(text))",
                hint: "requests with an encoded slash, backslash or control byte are refused")
        }
        if spelling != spelling.uppercased() {
            throw Misspelling(
                "must have escapes in upper case: \(quoted(text))",
                suggestion: normalised(text))
        }
    }

    /// The path with each escape in normal form (RFC 3986, section 6.2.2).
    private static func normalised(_ text: String) -> String {
        text.replacing(/%([0-9A-Fa-f]{2})/) { match in
            guard let byte = UInt8(match.1, radix: 16), isUnreserved(byte) else {
                return match.0.uppercased()
            }
            return String(decoding: [byte], as: UTF8.self)
        }
    }

    private static func escape(_ byte: UInt8) -> String {
        if byte > 0x20, byte < 0x7F, !Array("\"<>\\^`{|}".utf8).contains(byte) {
            return String(decoding: [byte], as: UTF8.self)
        }
        let digits = String(byte, radix: 16, uppercase: true)
        return "%" + (digits.count == 1 ? "0" : "") + digits
    }

    /// RFC 3986, section 2.3.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || Array("-._~".utf8).contains(byte)
    }
}
