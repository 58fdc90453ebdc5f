internal import Attestation
internal import Policy

/// `[project.NAME]`: whose tokens are served.
extension ConfigurationLoader {
    /// Every `[project.NAME]`, in file order.
    mutating func readProjects(_ root: TableReader) -> [ProjectSource] {
        hasProjects = root.setting("project") != nil
        var sources: [ProjectSource] = []
        var issuers: [String: (name: String, line: Int)] = [:]
        for (name, table) in root.namedTables("project", schema: .project) {
            name.checkKeyAsLabel()
            projects.append(name.node.key)
            guard let table else {
                aliases.append([])
                continue
            }
            let source = readProject(name.node.key, table)
            aliases.append(source.project.apps.map(\.alias))
            sources.append(source)
            let issuer = source.project.issuer
            if issuer.isEmpty { continue }
            if let other = issuers[issuer] {
                log.error(
                    "\(table.label) has the same issuer as [project.\(printable(other.name))] on "
                        + "line \(other.line): \(quoted(redacted(issuer)))",
                    at: table.region, hint: "the issuer decides whose keys a token is held against")
            } else {
                issuers[issuer] = (name.node.key, table.region.start.line)
            }
        }
        return sources
    }

    private func readProject(_ name: String, _ table: TableReader) -> ProjectSource {
        let number = table.required(
            "number", hint: "the project number of the Firebase console: number = \"123456789012\""
        ).flatMap(readNumber)
        let issuer =
            table.setting("issuer")?.string(checkIssuer)
            ?? number.map { "https://firebaseappcheck.googleapis.com/\($0)" }
        let leeway = table.setting("leeway")?.wholeSeconds(in: .zero ... .minutes(5)) ?? .minutes(1)
        let project = Project(
            name: name, number: number ?? "", id: table.setting("id")?.string(checkProjectID),
            issuer: issuer ?? "", apps: readApps(table, number: number),
            leeway: leeway.components.seconds)
        var source = ProjectSource(project: project, keys: .url(Self.googleKeys))
        readKeySource(table, into: &source)
        source.fingerprints = readFingerprints(table)
        return source
    }

    private func readNumber(_ setting: Setting) -> String? {
        if let integer = setting.node.integer {
            setting.wrongType("a string of digits", hint: "write \"\(integer)\"")
            return nil
        }
        return setting.string { text throws(Misspelling) in
            let isNumber = text.utf8.count <= 20 && text.utf8.allSatisfy(isDigit)
            if isNumber, text.first != "0" { return text }
            throw Misspelling(
                "must be digits: \(quoted(text))",
                hint: "the project number, not the project id, which goes into \"id\"")
        }
    }

    private func readApps(_ project: TableReader, number: String?) -> [(alias: String, id: String)]
    {
        guard let setting = project.setting("apps") else { return [] }
        guard setting.node.kind == .table else {
            setting.wrongType(
                "a table of app ids", hint: "apps = { ios = \"1:123456789012:ios:0a1b2c3d4e5f\" }")
            return []
        }
        var apps: [(alias: String, id: String)] = []
        var seen: [String: String] = [:]
        for node in setting.node.children {
            let app = Setting(
                label: "app \(quoted(node.key)) in \(project.label)", node: node, log: log)
            app.checkKeyAsLabel()
            if node.key == "other" {
                log.error(
                    "\(app.label) has a name that metrics use for every app without one",
                    at: node.keyRegion)
            }
            let id = app.string(checkAppID) ?? ""
            if !id.isEmpty {
                warnAboutNumber(of: id, app, number: number)
                if let other = seen[id] {
                    app.error("has the same id as app \(quoted(other))")
                }
                seen[id] = node.key
            }
            apps.append((node.key, id))
        }
        return apps
    }

    private func warnAboutNumber(of id: String, _ app: Setting, number: String?) {
        let parts = id.split(separator: ":", omittingEmptySubsequences: false)
        if let number, parts.count == 4, parts[1] != number {
            app.warning(
                "belongs to project number \(quoted(String(parts[1]))), not \(quoted(number))")
        }
    }

    private func readFingerprints(_ project: TableReader) -> [ClientFingerprint] {
        guard
            let table = project.table("client_fingerprints", schema: .fingerprints)
        else { return [] }
        var fingerprints: [ClientFingerprint] = []
        for element in table.setting("fields")?.elements("field names") ?? [] {
            if let name = element.string(checkFieldName) {
                fingerprints.append(.fieldPresent(name.lowercased()))
            }
        }
        for element in table.setting("user_agents")?.elements("patterns") ?? [] {
            if let pattern = element.string(checkUserAgent) {
                fingerprints.append(.userAgent(pattern: pattern))
            }
        }
        return fingerprints
    }
}

private func checkIssuer(_ text: String) throws(Misspelling) -> String {
    if text.utf8.count > 256 || !text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) {
        throw Misspelling("must be at most 256 printable characters without spaces")
    }
    return text
}

private func checkProjectID(_ text: String) throws(Misspelling) -> String {
    let isID =
        text.utf8.count <= 100
        && text.utf8.allSatisfy {
            isLowerCaseLetter($0) || isDigit($0) || Array("-.:".utf8).contains($0)
        }
    if !isID {
        throw Misspelling(
            "is not a project id: \(quoted(text))",
            hint: "project ids have lower-case letters, digits and hyphens")
    }
    if text.utf8.allSatisfy(isDigit) {
        throw Misspelling(
            "must be the project id, not a number: \(quoted(text))",
            hint: "the project number goes into \"number\"")
    }
    return text
}

private func checkAppID(_ text: String) throws(Misspelling) -> String {
    if text.utf8.count > 256 || !text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) {
        throw Misspelling("is not an app id: \(quoted(text))", hint: appIDHint)
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    let hasShape = parts.count == 4 && !parts.contains("") && parts[1].utf8.allSatisfy(isDigit)
    if !hasShape { throw Misspelling("is not an app id: \(quoted(text))", hint: appIDHint) }
    return text
}

private let appIDHint =
    "app ids of the Firebase console look like \"1:123456789012:ios:0a1b2c3d4e5f\""

private func checkUserAgent(_ text: String) throws(Misspelling) -> String {
    if text.allSatisfy({ $0 == "*" }) {
        throw Misspelling("would match every client: \(quoted(text))")
    }
    if text.utf8.count > 256 || !text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) {
        throw Misspelling("must be at most 256 printable ASCII characters: \(quoted(text))")
    }
    return text
}
