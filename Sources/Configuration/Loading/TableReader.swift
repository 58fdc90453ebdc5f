/// Reads one table: says which keys do not belong there, and hands out the others as settings.
struct TableReader {
    /// How messages call the table: "[server]", "[[route]]", "\"cors\" in [[route]]".
    let label: String
    /// Where the table stands: its header, or its key.
    let region: SourceRegion
    let log: DiagnosticLog

    private let entries: [String: TOMLNode]
    /// Keys that unknown ones were probably meant to be: complaining that they are missing says
    /// nothing new.
    private let misspelt: Set<String>

    /// Reports every key that `schema` does not have. Nil, and an error, when `node` is no table.
    init?(_ node: TOMLNode, label: String, schema: Schema, log: DiagnosticLog) {
        guard node.kind == .table else {
            let region = node.region
            log.error("\(label) must be a table, not \(node.kind.phrase)", at: region)
            return nil
        }
        self.label = label
        self.log = log
        // An inline table's own text may be long; its key says which one is meant.
        let isInline = !node.key.isEmpty && node.keyRegion.start < node.region.start
        region = isInline ? node.keyRegion : node.region
        var entries: [String: TOMLNode] = [:]
        var misspelt: Set<String> = []
        for child in node.children {
            if log.isPartial, child.key.hasPrefix(SyntaxRecovery.skippedTable) {
                continue
            } else if schema.keys.contains(child.key) {
                entries[child.key] = child
            } else {
                let known = schema.keys
                let suggestion = log.suggestion(for: child.key, among: known)
                if let suggestion { misspelt.insert(suggestion) }
                log.error(
                    "unknown key \(quoted(child.key))\(Self.place(label))", at: child.keyRegion,
                    suggestion: suggestion,
                    hint: suggestion == nil ? "known keys: \(known.joined(separator: ", "))" : nil)
            }
        }
        self.entries = entries
        self.misspelt = misspelt
    }

    /// A key's value, or nil when the table does not have it.
    func setting(_ key: String) -> Setting? {
        entries[key].map { Setting(label: "\"\(key)\"\(Self.place(label))", node: $0, log: log) }
    }

    /// A key's value; an error when the table does not have it.
    func required(_ key: String, hint: String? = nil) -> Setting? {
        if let setting = setting(key) { return setting }
        if misspelt.contains(key) { return nil }
        log.missing("\(label) needs \"\(key)\"", at: region, hint: hint)
        return nil
    }

    /// A table within this one, or nil when there is none. Its label says where it lies unless one
    /// is given.
    func table(_ key: String, schema: Schema, label name: String? = nil) -> TableReader? {
        entries[key].flatMap {
            let label = name ?? "\"\(key)\" of \(label)"
            return TableReader($0, label: label, schema: schema, log: log)
        }
    }

    /// The tables of `[[key]]`, in file order.
    func tables(_ key: String, schema: Schema) -> [TableReader] {
        guard let node = entries[key] else { return [] }
        let label = "[[\(key)]]"
        guard node.kind == .array else {
            log.error(
                "\"\(key)\" must be an array of tables, not \(node.kind.phrase)", at: node.region,
                hint: "write \(label)")
            // What is in it is worth checking all the same.
            return node.kind == .table
                ? [TableReader(node, label: label, schema: schema, log: log)].compactMap(\.self)
                : []
        }
        return node.children.compactMap {
            TableReader($0, label: label, schema: schema, log: log)
        }
    }

    /// The tables of `[key.NAME]` with their names, in file order.
    func namedTables(_ key: String, schema: Schema) -> [(name: Setting, table: TableReader?)] {
        guard let node = entries[key] else { return [] }
        guard node.kind == .table else {
            log.error(
                "\"\(key)\" must be a table of tables, not \(node.kind.phrase)", at: node.region,
                hint: "write [\(key).NAME]")
            return []
        }
        if let stray = node.children.first(where: { $0.kind != .table }) {
            log.error(
                "\(quoted(stray.key)) in [\(key)] belongs into a table with a name",
                at: stray.keyRegion, hint: "write [\(key).NAME]")
        }
        let isUnnamed = node.children.contains { $0.kind != .table }
        return node.children.compactMap { child in
            // The inner tables of a table without a name are no tables with one.
            if child.kind != .table || isUnnamed && schema.keys.contains(child.key) { return nil }
            let label = "[\(key).\(printable(child.key))]"
            return (
                Setting(label: label, node: child, log: log),
                TableReader(child, label: label, schema: schema, log: log)
            )
        }
    }

    /// " in [server]", and nothing for the root.
    private static func place(_ label: String) -> String {
        label.isEmpty ? "" : " in \(label)"
    }
}
