/// Collects what is wrong with one file, so that a user learns of every mistake at once.
final class DiagnosticLog {
    private let file: String
    private let text: String
    private lazy var source = MaskedSource(text)
    /// In the order in which they were found.
    private(set) var diagnostics: [Diagnostic] = []

    /// Part of the file was left out because it is no TOML: what seems to be missing may be there.
    var isPartial = false

    /// Suggestions compare with every known name; a file that is wrong everywhere must not take
    /// quadratic time.
    private var suggestionsLeft = 100

    init(file: String, text: String) {
        self.file = file
        self.text = text
    }

    /// Whether the configuration cannot be used.
    var hasErrors: Bool { diagnostics.contains { $0.severity == .error } }

    /// Notes that the configuration cannot be used. Without a region it is the file as a whole that
    /// is wrong.
    func error(
        _ message: String, at region: SourceRegion?, suggestion: String? = nil, hint: String? = nil
    ) {
        report(.error, message, at: region, suggestion: suggestion, hint: hint)
    }

    /// Notes that something is not there; unless it may be in a part of the file that could not be
    /// read.
    func missing(
        _ message: String, at region: SourceRegion?, suggestion: String? = nil, hint: String? = nil
    ) {
        if !isPartial { error(message, at: region, suggestion: suggestion, hint: hint) }
    }

    /// Notes something that is allowed but rarely meant.
    func warning(_ message: String, at region: SourceRegion?, hint: String? = nil) {
        report(.warning, message, at: region, suggestion: nil, hint: hint)
    }

    /// Whether the line may hold a secret, so that no message may quote from it.
    func isMasked(line: Int) -> Bool { source.isMasked(line) }

    /// The known name that is nearest to what was written, if one is near.
    func suggestion(for name: String, among known: some Sequence<String>) -> String? {
        if suggestionsLeft == 0 { return nil }
        suggestionsLeft -= 1
        return nearest(to: name, among: known)
    }

    /// Everything that was noted, in file order.
    func sorted() -> [Diagnostic] {
        diagnostics.enumerated().sorted { left, right in
            (left.element.position, left.offset) < (right.element.position, right.offset)
        }.map(\.element)
    }

    private func report(
        _ severity: Diagnostic.Severity, _ message: String, at region: SourceRegion?,
        suggestion: String?, hint: String?
    ) {
        diagnostics.append(
            Diagnostic(
                severity: severity, file: file,
                position: region?.start ?? SourcePosition(line: 1, column: 1),
                width: region?.width ?? 1, message: message, suggestion: suggestion, hint: hint,
                sourceLine: region.flatMap { source.line($0.start.line) }))
    }
}

/// Text from the file as a message may show it: in quotes, without control characters, cut when it
/// is long.
func quoted(_ text: String) -> String {
    let longest = 80
    var shown = String(printable(text).prefix(longest))
    if text.count > longest { shown += "…" }
    return "\"\(shown)\""
}

/// Text with every control character replaced, so that a file cannot steer the terminal that shows
/// it.
public func printable(_ text: String) -> String {
    var view = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        let isControl =
            scalar.properties.generalCategory == .control
            || scalar.properties.generalCategory == .format
        view.append(isControl && scalar != "\t" ? "\u{FFFD}" : scalar)
    }
    return String(view)
}

/// Words as a sentence lists them: `"a"`, `"a" or "b"`, `"a", "b" or "c"`.
func alternatives(_ words: [String]) -> String {
    let quotedWords = words.map { "\"\($0)\"" }
    guard let last = quotedWords.last, quotedWords.count > 1 else { return quotedWords.joined() }
    return quotedWords.dropLast().joined(separator: ", ") + " or " + last
}
