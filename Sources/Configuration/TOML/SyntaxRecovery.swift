/// Parses a document, and where it is no TOML leaves out the broken line and goes on, so that the
/// mistakes behind the first one are found too.
enum SyntaxRecovery {
    /// Stands in for a table whose header cannot be used; what is in it is not read.
    static let skippedTable = "\u{0}skipped line "

    /// Reports every syntax error that is surely one of its own. Nil when the rest could not be
    /// read either.
    static func parse(_ bytes: [UInt8], log: DiagnosticLog) -> TOMLDocument? {
        var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        var bytes = bytes
        var lastLine = Int.min
        let most = 20
        for _ in 0...most {
            do {
                return try TOMLDocument(parsing: bytes)
            } catch {
                let line = error.position.line
                // Right behind a line that was left out, the error is likely to be that line's: an
                // array or a string that started there and has no end now.
                if line <= lastLine || !separates(lines, lastLine, line) { return nil }
                let text = lines.indices.contains(line - 1) ? lines[line - 1] : []
                report(error, line: String(decoding: text, as: UTF8.self), log: log)
                log.isPartial = true
                if text.isEmpty || error.isWholeFile { return nil }
                lines[line - 1] = replacement(for: text, line: line)
                lastLine = line
                bytes = Array(lines.joined(separator: [0x0A]))
            }
        }
        return nil
    }

    /// Whether a line with something on it lies between two lines.
    private static func separates(
        _ lines: [ArraySlice<UInt8>], _ before: Int, _ after: Int
    ) -> Bool {
        guard before > 0, after - 1 <= lines.count else { return true }
        return lines[before..<(after - 1)].contains { line in
            line.contains { $0 > 0x20 }
        }
    }

    /// Nothing; in place of a header one that keeps the lines below apart from the table above.
    private static func replacement(for line: ArraySlice<UInt8>, line number: Int) -> ArraySlice<
        UInt8
    > {
        let isHeader = line.first { $0 > 0x20 } == UInt8(ascii: "[")
        return isHeader ? Array("[\"\\u0000skipped line \(number)\"]".utf8)[...] : []
    }

    private static func report(_ error: TOMLSyntaxError, line: String, log: DiagnosticLog) {
        let isMasked = log.isMasked(line: error.position.line)
        let (message, hint) = described(error.message, isMasked: isMasked)
        log.error(
            message, at: SourceRegion(at: error.position),
            hint: hint ?? (isMasked ? nil : quotesHint(line)))
    }

    /// The parser's words in ours. Of a line that may hold a secret the parser must not quote
    /// anything.
    private static func described(
        _ message: String, isMasked: Bool
    ) -> (message: String, hint: String?) {
        let prefix = "Error while parsing "
        guard message.hasPrefix(prefix), let colon = message.firstRange(of: ": ") else {
            return (message.prefix(1).lowercased() + printable(String(message.dropFirst())), nil)
        }
        let place = message[..<colon.lowerBound].dropFirst(prefix.count)
        if message.contains("nested value depth") {
            return ("arrays and tables are nested too deeply", nil)
        }
        if isMasked { return ("syntax error in \(place)", nil) }
        if let name = message.firstMatch(of: /cannot redefine existing .*?'(.*)'/)?.1 {
            let kind = message.contains("header") ? "table" : "key"
            return ("\(kind) \(quoted(String(name))) is there twice", nil)
        }
        if message.contains("unescaped control characters") {
            return ("the string has no closing quote on this line", nil)
        }
        let detail = printable(String(message[colon.upperBound...]))
        let hint = "an array needs a comma between its elements and a \"]\" at its end"
        return ("syntax error in \(place): \(detail)", place == "array" ? hint : nil)
    }

    /// The commonest slip: a word or a duration without its quotes.
    private static func quotesHint(_ line: String) -> String? {
        guard let match = line.wholeMatch(of: /[^=#"]*=\s*([^\s"'\[{#,][^\s"'\[{#,]*)\s*(#.*)?/)
        else {
            return nil
        }
        let isWord = match.1.contains { $0.isLetter || $0 == "%" || $0 == ":" || $0 == "/" }
        return isWord ? "text needs quotes: \(quoted(String(match.1)))" : nil
    }
}

extension TOMLSyntaxError {
    /// The error is not one line's.
    fileprivate var isWholeFile: Bool { message.hasPrefix("the file") }
}
