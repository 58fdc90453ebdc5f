internal import Attestation
internal import Policy

/// Turns a document into a configuration, section by section. Never stops at a mistake: what is
/// wrong is reported and stands in with its default, so that the rest can be checked.
struct ConfigurationLoader {
    let log: DiagnosticLog
    let fileName: String
    let surroundings: Surroundings

    /// What routes refer to by name. A table with mistakes in it has a name all the same.
    var projects = NamedTables(kind: "project")
    var upstreams = NamedTables(kind: "upstream")
    /// Whether there is a `project` key, be it right or wrong.
    var hasProjects = false
    /// Per project: its app aliases, in file order.
    var aliases: [[String]] = []

    init(log: DiagnosticLog, fileName: String, surroundings: Surroundings) {
        self.log = log
        self.fileName = fileName
        self.surroundings = surroundings
    }

    /// Reads the whole document. Nil when it has no usable route table; otherwise worth something
    /// only when nothing was reported as an error.
    mutating func load(_ root: TOMLNode) -> Configuration? {
        guard let reader = TableReader(root, label: "", schema: .root, log: log) else {
            return nil
        }
        let server = readServer(reader)
        let logSettings = readLog(reader)
        let admin = readAdmin(reader)
        let tracing = readTracing(reader)
        let listeners = readListeners(reader)
        checkAddresses(listeners, admin: admin)
        let projects = readProjects(reader)
        let upstreams = readUpstreams(reader)
        checkForLoops(upstreams, listeners: listeners)
        let replay = readReplay(reader)
        guard let routes = readRoutes(reader, replay) else { return nil }
        var configuration = Configuration(routes: routes)
        configuration.server = server
        configuration.log = logSettings
        configuration.admin = admin?.value
        configuration.tracing = tracing
        configuration.replay = replay.settings
        configuration.listeners = listeners.map(\.value)
        configuration.projects = projects
        configuration.upstreams = upstreams.map(\.value)
        return configuration
    }

    /// A path from the file as this process opens it: relative ones start at the file's folder.
    func resolved(_ path: String) -> String {
        guard !path.hasPrefix("/"), let slash = fileName.lastIndex(of: "/") else { return path }
        return String(fileName[...slash]) + path
    }
}

/// A value with the place in the file that messages about it point at.
struct Located<Value> {
    var value: Value
    var region: SourceRegion
}

/// The names of `[kind.NAME]` tables, for references from elsewhere.
struct NamedTables {
    let kind: String
    private(set) var names: [String] = []
    private var indices: [String: Int] = [:]

    init(kind: String) {
        self.kind = kind
    }

    mutating func append(_ name: String) {
        indices[name] = names.count
        names.append(name)
    }

    /// The index of the table that a setting names; an error when there is none.
    func resolve(_ reference: Setting) -> Int? {
        guard let name = reference.string() else { return nil }
        if let index = indices[name] { return index }
        let suggestion = reference.log.suggestion(for: name, among: names)
        let hint =
            names.isEmpty
            ? "there is no [\(kind).NAME] table"
            : "known: " + names.prefix(10).map(printable).joined(separator: ", ")
        reference.missing(
            "names no \(kind): \(quoted(name))", suggestion: suggestion,
            hint: suggestion == nil ? hint : nil)
        return nil
    }
}

/// Checks a name that becomes a label in logs and metrics: letters, digits, "_", "-" and "."; at
/// most 64.
func checkLabel(_ name: String) throws(Misspelling) -> String {
    let isLabel =
        (1...64).contains(name.utf8.count) && (name.utf8.first.map(isLetterOrDigit) ?? false)
        && name.utf8.allSatisfy { isLetterOrDigit($0) || Array("_-.".utf8).contains($0) }
    if isLabel { return name }
    throw Misspelling(
        "cannot be a label: \(quoted(name))",
        hint: "names have letters, digits, \"_\", \"-\" and \".\", start with a letter or digit, "
            + "and are at most 64 characters long")
}

extension Setting {
    /// Checks the key itself as a label; for `[kind.NAME]`.
    func checkKeyAsLabel() {
        do {
            _ = try checkLabel(node.key)
        } catch {
            log.error("\(label) \(error.message)", at: node.keyRegion, hint: error.hint)
        }
    }
}
