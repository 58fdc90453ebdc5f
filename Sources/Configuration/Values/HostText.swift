/// Host names, and the patterns of them that routes are chosen by.
enum HostText {
    /// Whether a text is a host name: labels of letters, digits, hyphens and underscores, 253 bytes
    /// at most.
    static func isName(_ text: some StringProtocol) -> Bool {
        if text.utf8.count > 253 { return false }
        return text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
            (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
                && label.utf8.allSatisfy { isLetterOrDigit($0) || $0 == 0x2D || $0 == 0x5F }
        }
    }

    /// Checks one of a route's `hosts`: a lower-case name, `*.name`, or an IP literal; never a
    /// port.
    static func pattern(_ text: String) throws(Misspelling) -> String {
        let lower = text.lowercased()
        if lower == "*" {
            throw Misspelling(
                "must be a name, not \"*\"", hint: "a route without \"hosts\" serves every host")
        }
        let isBracketed = lower.hasPrefix("[") && lower.hasSuffix("]")
        if isBracketed, AddressText.isLiteral(String(lower.dropFirst().dropLast())) {
            return try lowerCase(text)
        }
        if lower.hasSuffix("."), isName(lower.dropLast()) {
            throw Misspelling(
                "must not end with a dot: \(quoted(text))", suggestion: String(lower.dropLast()))
        }
        let name = lower.hasPrefix("*.") ? lower.dropFirst(2) : lower[...]
        if isName(name) { return try lowerCase(text) }
        if let scheme = lower.firstRange(of: "://") {
            let authority = lower[scheme.upperBound...].prefix { $0 != "/" && $0 != ":" }
            throw Misspelling(
                "must be a host name, not a URL: \(quoted(text))",
                suggestion: isName(authority) ? String(authority) : nil)
        }
        if let colon = name.lastIndex(of: ":"), isName(name[..<colon]) {
            let withoutPort = lower[..<(lower.lastIndex(of: ":") ?? lower.endIndex)]
            throw Misspelling(
                "must not have a port: \(quoted(text))", suggestion: String(withoutPort),
                hint: "hosts are compared without their port")
        }
        throw Misspelling(
            "is not a host name: \(quoted(text))",
            hint: "write a name such as \"api.example.com\" or \"*.example.com\"")
    }

    private static func lowerCase(_ text: String) throws(Misspelling) -> String {
        let lower = text.lowercased()
        if lower == text { return text }
        throw Misspelling("must be lower case: \(quoted(text))", suggestion: lower)
    }
}

/// ASCII letters and digits.
func isLetterOrDigit(_ byte: UInt8) -> Bool {
    isDigit(byte) || isLowerCaseLetter(byte) || isUpperCaseLetter(byte)
}

func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

func isUpperCaseLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) }

func isLowerCaseLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }
