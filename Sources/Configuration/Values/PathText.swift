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
        if text.contains(/%25[0-9A-Fa-f]{2}|%C[01]%[89AB]|%E0%[89]|%F0%8/) {
            throw Misspelling(
                "can never match: \(quoted(text))",
                hint: "requests that are encoded twice, or spell ASCII too long, are refused")
        }
        if text.contains(/\/\.\.?%(3B|20)/) {
            throw Misspelling(
                "can never match: \(quoted(text))",
                hint: "requests with a space or a parameter behind a dot segment are refused")
        }
        return text
    }

    private static func checkBytes(_ text: String) throws(Misspelling) {
        let bytes = Array(text.utf8)
        for (index, byte) in bytes.enumerated() {
            if byte == 0x25 {
                try checkEscape(bytes[index...].dropFirst().prefix(2), in: text)
            } else if !isPlain(byte) {
                let canBeEscaped = bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != 0x5C }
                throw Misspelling(
                    "has characters that a path cannot have: \(quoted(text))",
                    suggestion: canBeEscaped ? bytes.map(escaped).joined() : nil)
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
        if isRefused(byte) {
            throw Misspelling(
                "can never match: \(quoted(text))",
                hint: "requests with an encoded slash, backslash or control byte are refused")
        }
        if text != normalised(text) {
            throw Misspelling(
                "has an escape that is not in normal form: \(quoted(text))",
                suggestion: normalised(text),
                hint: "routes are compared with paths whose needless escapes were removed")
        }
    }

    /// The path with each escape in normal form (RFC 3986, section 6.2.2).
    private static func normalised(_ text: String) -> String {
        text.replacing(/%([0-9A-Fa-f]{2})/) { match in
            // A backend may read "+" as a space and "%2B" as a plus.
            guard let byte = UInt8(match.1, radix: 16), isPlain(byte), byte != 0x2B,
                !isRefused(byte)
            else { return match.0.uppercased() }
            return String(decoding: [byte], as: UTF8.self)
        }
    }

    private static func escaped(_ byte: UInt8) -> String {
        if isPlain(byte) || byte == 0x25 { return String(decoding: [byte], as: UTF8.self) }
        let digits = String(byte, radix: 16, uppercase: true)
        return "%" + (digits.count == 1 ? "0" : "") + digits
    }

    /// What stands in a path as itself: "/", and pchar of RFC 3986, section 3.3, without "%" and
    /// ";".
    private static func isPlain(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || Array("-._~!$&'()*+,=:@/".utf8).contains(byte)
    }

    /// What must not hide in an escape.
    private static func isRefused(_ byte: UInt8) -> Bool {
        byte < 0x20 || byte == 0x7F || Array("/\\".utf8).contains(byte)
    }
}
