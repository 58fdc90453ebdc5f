/// One mistake in a configuration file, or something that is allowed but rarely meant.
public struct Diagnostic: Sendable, Equatable {
    /// Only errors keep a configuration from being used.
    public enum Severity: String, Sendable {
        /// The configuration is not used.
        case error
        case warning
    }

    /// How bad it is.
    public var severity: Severity
    /// The file's name as it was given.
    public var file: String
    public var position: SourcePosition
    /// How many columns of the source line are meant. 1 or more.
    public var width: Int
    /// What is wrong, with the offending text quoted.
    public var message: String
    /// The nearest name that would have been right.
    public var suggestion: String?
    /// What to do about it.
    public var hint: String?
    /// The line that `position` is on, with secrets masked; nil where the file has no such line.
    public var sourceLine: String?
}

extension Diagnostic: CustomStringConvertible {
    /// The way compilers print: `file:line:column: error: message; did you mean "this"?`, the
    /// source line, a caret.
    public var description: String {
        var text = "\(file):\(position.line):\(position.column): \(severity.rawValue): \(message)"
        if let suggestion { text += "; did you mean \"\(suggestion)\"?" }
        if let excerpt = sourceLine.flatMap(excerpt(of:)) { text += "\n" + excerpt }
        if let hint { text += "\n  hint: \(hint)" }
        return text
    }

    /// The source line and a line with the caret below it, cut to what fits a terminal.
    private func excerpt(of line: String) -> String? {
        let widest = 120
        let scalars = Array(line.unicodeScalars)
        if scalars.allSatisfy({ $0 == " " || $0 == "\t" }) { return nil }
        let column = min(position.column - 1, scalars.count)
        let start = column > widest - 20 ? column - 40 : 0
        let end = min(scalars.count, start + widest)
        // Tabs are repeated, so that the caret stands below its text whatever their width.
        let indent = scalars[start..<min(column, end)].map { $0 == "\t" ? "\t" : " " }.joined()
        let underlined = min(width, max(1, end - column))
        let excerpt = String(String.UnicodeScalarView(scalars[start..<end]))
        return "  \(excerpt)\n  \(indent)^\(String(repeating: "~", count: underlined - 1))"
    }
}
