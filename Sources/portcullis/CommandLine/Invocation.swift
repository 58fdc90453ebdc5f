internal import Configuration

/// What a command line asks for.
enum Invocation: Equatable {
    case run(configuration: String)
    case check(configuration: String)
    case explain(ExplainRequest)
    case demo
    case health(ListenAddress)
    case status(StatusCommand)
    case drain(DrainCommand)
    case help(Topic)
    case version

    /// What help is about.
    enum Topic: String, CaseIterable {
        case run, check, explain, demo, health, status, drain, undrain
        case everything = ""
    }

    /// Reads the arguments behind the program's name.
    init(_ arguments: [String]) throws(UsageError) {
        guard let command = arguments.first else {
            throw UsageError("which command?")
        }
        let rest = Array(arguments.dropFirst())
        switch command {
        case "run": self = try Self.withConfiguration(rest, .run) { .run(configuration: $0) }
        case "check": self = try Self.withConfiguration(rest, .check) { .check(configuration: $0) }
        case "explain": self = try Self.explain(rest)
        case "demo": self = try Self.demo(rest)
        case "health": self = try Self.health(rest)
        case "help": self = try Self.help(rest)
        case "-h", "--help": self = .help(.everything)
        case "--version", "version": self = .version
        case "status": self = try Self.status(rest)
        case "drain": self = try Self.drain(rest, .drain)
        case "undrain": self = try Self.drain(rest, .undrain)
        case "rollout": throw UsageError("\"\(command)\" is not supported yet")
        default: throw Self.unknown(command)
        }
    }

    /// Reads the arguments and does what they ask for.
    static func perform(_ arguments: [String], console: Console) -> ExitCode {
        let invocation: Invocation
        do {
            invocation = try Invocation(arguments)
        } catch {
            console.complain("portcullis: \(error.message)")
            console.complain(Help.pointer(arguments.first))
            return .usage
        }
        switch invocation {
        case .run(let configuration): return RunCommand(configuration, console).perform()
        case .check(let configuration): return CheckCommand(configuration, console).perform()
        case .explain(let request): return ExplainCommand(request, console).perform()
        case .demo: return DemoCommand(console).perform()
        case .health(let address): return HealthCommand(address, console).perform()
        case .status(let command): return command.perform(console)
        case .drain(let command): return command.perform(console)
        case .help(let topic): console.print(Help.text(topic))
        case .version: console.print("portcullis \(Help.version)")
        }
        return .done
    }

    private static func unknown(_ command: String) -> UsageError {
        let known = Topic.allCases.map(\.rawValue) + ["help"]
        let suggestion = nearest(to: command, among: known).map { "; did you mean \"\($0)\"?" }
        return UsageError("unknown command \"\(command)\"" + (suggestion ?? ""))
    }

    private static func withConfiguration(
        _ arguments: [String], _ topic: Topic, _ make: (String) -> Invocation
    ) throws(UsageError) -> Invocation {
        let options = try ParsedOptions(arguments, known: [.config, .help, .version])
        if let general = general(options, topic) { return general }
        try options.noOperands()
        guard let configuration = try options.one(.config) else {
            throw UsageError("\(topic.rawValue) needs -c FILE")
        }
        return make(configuration)
    }

    private static func explain(_ arguments: [String]) throws(UsageError) -> Invocation {
        let options = try ParsedOptions(
            arguments, known: [.config, .help, .version] + ExplainRequest.options)
        if let general = general(options, .explain) { return general }
        return .explain(try ExplainRequest(options))
    }

    private static func demo(_ arguments: [String]) throws(UsageError) -> Invocation {
        let options = try ParsedOptions(arguments, known: [.help, .version])
        if let general = general(options, .demo) { return general }
        try options.noOperands()
        return .demo
    }

    private static func health(_ arguments: [String]) throws(UsageError) -> Invocation {
        let options = try ParsedOptions(arguments, known: [.admin, .help, .version])
        if let general = general(options, .health) { return general }
        try options.noOperands()
        let text = try options.one(.admin) ?? "127.0.0.1:9090"
        guard let address = ListenAddress(text) else {
            throw UsageError("\"\(text)\" is no address; write host:port or unix:/path")
        }
        return .health(address)
    }

    private static func status(_ arguments: [String]) throws(UsageError) -> Invocation {
        let options = try ParsedOptions(
            arguments, known: AdminTarget.options + [StatusCommand.json, .help, .version])
        if let general = general(options, .status) { return general }
        return .status(try StatusCommand(options))
    }

    private static func drain(_ arguments: [String], _ topic: Topic) throws(UsageError)
        -> Invocation
    {
        let options = try ParsedOptions(
            arguments, known: AdminTarget.options + [DrainCommand.tokenFile, .help, .version])
        if let general = general(options, topic) { return general }
        return .drain(try DrainCommand(options, isDraining: topic == .drain))
    }

    private static func help(_ arguments: [String]) throws(UsageError) -> Invocation {
        guard let name = arguments.first else { return .help(.everything) }
        guard let topic = Topic(rawValue: name) else { throw unknown(name) }
        return .help(topic)
    }

    /// `--help` and `--version` win over everything else.
    private static func general(_ options: ParsedOptions, _ topic: Topic) -> Invocation? {
        if options.has(.help) { return .help(topic) }
        return options.has(.version) ? .version : nil
    }
}
