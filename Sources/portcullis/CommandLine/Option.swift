internal import Configuration

/// An option that a command knows.
struct Option {
    /// With the dashes: "-c", "--config".
    var names: [String]
    /// Whether a value follows it.
    var takesValue = true

    /// The long name, by which `ParsedOptions` has it.
    var name: String { names.last ?? "" }

    static let config = Option(names: ["-c", "--config"])
    static let admin = Option(names: ["--admin"])
    static let help = Option(names: ["-h", "--help"], takesValue: false)
    static let version = Option(names: ["--version"], takesValue: false)
}

/// Why a command line cannot be understood.
struct UsageError: Error, Equatable {
    var message: String

    init(_ message: String) {
        self.message = message
    }
}

/// A command's arguments, sorted into options and the rest.
struct ParsedOptions {
    private(set) var operands: [String] = []
    private var values: [String: [String]] = [:]

    /// Reads `--name value`, `--name=value`, `-n value` and `-nvalue`; everything behind `--` is an
    /// operand.
    init(_ arguments: [String], known: [Option]) throws(UsageError) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--" {
                operands += rest
                return
            }
            if argument == "-" || !argument.hasPrefix("-") {
                operands.append(argument)
                continue
            }
            let (option, attached) = try Self.option(argument, known: known)
            if !option.takesValue {
                if attached != nil { throw UsageError("\(option.name) takes no value") }
                values[option.name, default: []].append("")
            } else if let value = attached ?? rest.popFirst() {
                values[option.name, default: []].append(value)
            } else {
                throw UsageError("\(argument) needs a value")
            }
        }
    }

    /// Whether an option is there.
    func has(_ option: Option) -> Bool { values[option.name] != nil }

    /// Every value of an option that may be repeated, in order.
    func all(_ option: Option) -> [String] { values[option.name] ?? [] }

    /// The value of an option that may be there once, or nil when it is not.
    func one(_ option: Option) throws(UsageError) -> String? {
        let values = all(option)
        if values.count > 1 { throw UsageError("\(option.name) is there more than once") }
        return values.first
    }

    /// Throws when there are operands.
    func noOperands() throws(UsageError) {
        if let first = operands.first { throw UsageError("unexpected argument \"\(first)\"") }
    }

    private static func option(
        _ argument: String, known: [Option]
    ) throws(UsageError) -> (Option, attached: String?) {
        let isLong = argument.hasPrefix("--")
        let end =
            isLong
            ? argument.firstIndex(of: "=") ?? argument.endIndex
            : argument.index(argument.startIndex, offsetBy: 2)
        let name = String(argument[..<end])
        guard let option = known.first(where: { $0.names.contains(name) }) else {
            let near = nearest(to: name, among: known.flatMap(\.names).filter { $0.count > 2 })
            let suggestion = isLong ? near.map { "; did you mean \($0)?" } : nil
            throw UsageError("unknown option \"\(name)\"" + (suggestion ?? ""))
        }
        if end == argument.endIndex { return (option, nil) }
        return (option, String(argument[end...].dropFirst(isLong ? 1 : 0)))
    }
}
