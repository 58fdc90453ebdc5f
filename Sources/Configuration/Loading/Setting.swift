/// One value with the name that messages give it. Each reading method answers nil after it has
/// reported what is wrong.
struct Setting {
    /// `"workers" in [server]`.
    let label: String
    let node: TOMLNode
    let log: DiagnosticLog
    /// Messages about it must not quote it.
    var isSecret = false

    /// Where the value stands.
    var region: SourceRegion { node.region }

    /// Reports that the value is wrong.
    func error(_ message: String, suggestion: String? = nil, hint: String? = nil) {
        log.error("\(label) \(message)", at: region, suggestion: suggestion, hint: hint)
    }

    /// Reports that what the value refers to is not there.
    func missing(_ message: String, suggestion: String? = nil, hint: String? = nil) {
        log.missing("\(label) \(message)", at: region, suggestion: suggestion, hint: hint)
    }

    /// Reports that the value is allowed but rarely meant.
    func warning(_ message: String, hint: String? = nil) {
        log.warning("\(label) \(message)", at: region, hint: hint)
    }

    /// Reports that the value has another type than `expected`.
    func wrongType(_ expected: String, hint: String? = nil) {
        error("must be \(expected), not \(node.kind.phrase)", hint: hint)
    }

    /// A string that is not empty.
    func string(hint: String? = nil) -> String? {
        guard let string = node.string else {
            wrongType("a string", hint: hint)
            return nil
        }
        if string.isEmpty {
            error("must not be empty", hint: hint)
            return nil
        }
        return string
    }

    /// true or false; anything else is an error.
    func boolean() -> Bool? {
        if let boolean = node.boolean { return boolean }
        let isWord = node.string == "true" || node.string == "false"
        wrongType("true or false", hint: isWord ? "booleans have no quotes" : nil)
        return nil
    }

    /// A whole number in a range; anything else is an error.
    func integer(in range: ClosedRange<Int>) -> Int? {
        guard let integer = node.integer else {
            wrongType("an integer", hint: "from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        guard let value = Int(exactly: integer), range.contains(value) else {
            error("must be from \(range.lowerBound) to \(range.upperBound), not \(integer)")
            return nil
        }
        return value
    }

    /// One of the raw values of `Choice`.
    func choice<Choice>(_: Choice.Type) -> Choice?
    where Choice: RawRepresentable<String> & CaseIterable {
        let words = Choice.allCases.map(\.rawValue)
        guard let word = node.string else {
            wrongType("a string", hint: "one of " + words.joined(separator: ", "))
            return nil
        }
        if let choice = Choice(rawValue: word) { return choice }
        error(
            "must be \(alternatives(words)), not \(quoted(word))",
            suggestion: log.suggestion(for: word, among: words))
        return nil
    }

    /// A duration such as "30s".
    func duration(in range: ClosedRange<Duration>) -> Duration? {
        let hint = "durations are strings: a whole number and ms, s, m, h or d, such as \"30s\""
        guard let text = node.string else {
            let spelling = node.integer.map { "; for seconds write \"\($0)s\"" } ?? ""
            wrongType("a duration", hint: hint + spelling)
            return nil
        }
        guard let duration = DurationText.parse(text) else {
            error("is not a duration: \(quoted(text))", hint: hint)
            return nil
        }
        if range.contains(duration) { return duration }
        let limits =
            "from \(DurationText.format(range.lowerBound)) to "
            + DurationText.format(range.upperBound)
        error("must be \(limits), not \(quoted(text))")
        return nil
    }

    /// A duration without a fraction of a second.
    func wholeSeconds(in range: ClosedRange<Duration>) -> Duration? {
        guard let duration = duration(in: range) else { return nil }
        if duration.components.attoseconds == 0 { return duration }
        error("must be whole seconds, not \(quoted(node.string ?? ""))")
        return nil
    }

    /// A size such as "64KiB", in bytes.
    func size(in range: ClosedRange<UInt64>) -> UInt64? {
        let hint = "sizes are strings: a whole number and B, KiB, MiB or GiB, such as \"64KiB\""
        guard let text = node.string else {
            let size = node.integer.flatMap(UInt64.init(exactly:))
            let spelling = size.map { "; write \"\(SizeText.format($0))\"" } ?? ""
            wrongType("a size", hint: hint + spelling)
            return nil
        }
        guard let size = SizeText.parse(text) else {
            error(
                "is not a size: \(quoted(text))", suggestion: SizeText.binarySpelling(of: text),
                hint: hint)
            return nil
        }
        if range.contains(size) { return size }
        let limits =
            "from \(SizeText.format(range.lowerBound)) to "
            + SizeText.format(range.upperBound)
        error("must be \(limits), not \(quoted(text))")
        return nil
    }

    /// The elements of an array that must have some.
    func elements(_ phrase: String, emptyHint: String? = nil) -> [Setting]? {
        guard node.kind == .array else {
            let isSingle = node.kind == .string
            wrongType(
                "an array of \(phrase)",
                hint: isSingle ? "write [\(isSecret ? "…" : quoted(node.string ?? ""))]" : nil)
            return nil
        }
        let children = node.children
        if children.isEmpty {
            error("must not be empty", hint: emptyHint)
            return nil
        }
        return children.map {
            Setting(label: "an element of \(label)", node: $0, log: log, isSecret: isSecret)
        }
    }
}
