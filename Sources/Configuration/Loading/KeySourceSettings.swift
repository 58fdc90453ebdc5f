internal import Policy

/// Where a project's keys come from: `jwks` and what belongs to it.
extension ConfigurationLoader {
    /// Google's key set, the default.
    static let googleKeys = "https://firebaseappcheck.googleapis.com/v1/jwks"

    /// `jwks` and what goes with it.
    func readKeySource(_ table: TableReader, into source: inout ProjectSource) {
        let keys = table.setting("jwks")
        if let keys, let value = keys.string(readKeys) {
            source.keys = value
            if case .file(let path) = value { warnIfUnreadable(path, keys) }
        }
        if let authority = table.setting("jwks_ca"), let path = authority.string().map(resolved) {
            warnIfUnreadable(path, authority)
            source.keysCA = path
        }
        if let proxy = table.setting("egress_proxy") {
            source.egressProxy = proxy.string(readEgressProxy)
        }
        source.keysHeaders = readKeysHeaders(table)
        guard case .file = source.keys else { return }
        for key in ["jwks_ca", "egress_proxy", "jwks_headers"] {
            table.setting(key)?.hasNoEffect(because: "\"jwks\" is a file")
        }
    }

    private func readKeys(_ text: String) throws(Misspelling) -> ProjectSource.KeySource {
        guard text.contains("://") else { return .file(resolved(text)) }
        if text.hasPrefix("file://") {
            throw Misspelling(
                "must be a path, not a URL: \(quoted(text))",
                suggestion: String(text.dropFirst("file://".count)))
        }
        let url = try URLText(text)
        switch url.scheme {
        case "https": return .url(text)
        case "http" where AddressText.isLoopback(host: url.host): return .url(text)
        case "http":
            throw Misspelling(
                "must be https: \(quoted(redacted(text)))",
                hint: "keys over plain http could be anybody's; only loopback is excepted")
        default:
            throw Misspelling(
                "must be an https URL or a file: \(quoted(redacted(text)))")
        }
    }

    private func readEgressProxy(_ text: String) throws(Misspelling) -> ListenAddress {
        let hint = "write \"http://host:port\""
        guard text.contains("://") else {
            let isAddress = (try? AddressText.connect(text)) != nil && !text.hasPrefix("unix:")
            throw Misspelling(
                "must be a URL: \(quoted(redacted(text)))",
                suggestion: isAddress ? "http://" + text : nil, hint: hint)
        }
        let url = try URLText(text)
        guard url.scheme == "http", url.rest.isEmpty || url.rest == "/", let port = url.port else {
            throw Misspelling("must be \"http://host:port\": \(quoted(redacted(text)))")
        }
        return .tcp(host: url.host, port: port)
    }

    private func readKeysHeaders(_ project: TableReader) -> [(name: String, value: String)] {
        guard let setting = project.setting("jwks_headers") else { return [] }
        guard setting.node.kind == .table else {
            setting.wrongType(
                "a table", hint: "jwks_headers = { X-Goog-Api-Key = { env = \"API_KEY\" } }")
            return []
        }
        var headers: [(name: String, value: String)] = []
        var seen: Set<String> = []
        for node in setting.node.children {
            let header = Setting(
                label: "\(quoted(node.key)) in \"jwks_headers\" of \(project.label)", node: node,
                log: log,
                isSecret: true)
            checkHeaderName(header, seen: &seen)
            if let value = readSecret(header) { headers.append((node.key, value)) }
        }
        return headers
    }

    private func checkHeaderName(_ header: Setting, seen: inout Set<String>) {
        let name = header.node.key
        let ours = [
            "host", "connection", "content-length", "transfer-encoding", "te", "upgrade",
            "accept-encoding", "if-none-match",
        ]
        if (try? checkFieldName(name)) == nil {
            log.error("\(header.label) is not a field name", at: header.node.keyRegion)
        } else if ours.contains(name.lowercased()) {
            log.error("\(header.label) is set by the proxy itself", at: header.node.keyRegion)
        } else if !seen.insert(name.lowercased()).inserted {
            log.error("\(header.label) is there twice", at: header.node.keyRegion)
        }
    }

    /// A secret in one of three spellings: the text itself, `{ file = "…" }`, `{ env = "…" }`.
    private func readSecret(_ setting: Setting) -> String? {
        if setting.node.kind != .table {
            return setting.string(
                hint: "write \"value\", { file = \"/run/secrets/key\" } or { env = \"NAME\" }",
                checkSecret)
        }
        guard let table = TableReader(setting.node, label: setting.label, schema: .secret, log: log)
        else { return nil }
        let file = table.setting("file")
        let variable = table.setting("env")
        switch (file, variable) {
        case (let file?, nil): return readSecretFile(file)
        case (nil, let variable?): return readSecretVariable(variable)
        default:
            log.error("\(setting.label) needs either \"file\" or \"env\"", at: table.region)
            return nil
        }
    }

    private func readSecretFile(_ setting: Setting) -> String? {
        guard let path = setting.string().map(resolved) else { return nil }
        guard let bytes = surroundings.file(path) else {
            setting.error("names a file that cannot be read")
            return nil
        }
        // Editors and `echo` end files with a line feed that is no part of the secret.
        let isLineEnd = { (byte: UInt8) in byte == 0x0A || byte == 0x0D }
        let text = String(
            decoding: bytes.reversed().drop(while: isLineEnd).reversed(), as: UTF8.self)
        return check(secret: text, setting, "names a file")
    }

    private func readSecretVariable(_ setting: Setting) -> String? {
        guard let name = setting.string() else { return nil }
        // Somebody may have put the secret itself here; only what is surely a name is quoted.
        let isName = name.utf8.allSatisfy { isUpperCaseLetter($0) || isDigit($0) || $0 == 0x5F }
        guard let text = surroundings.environment(name) else {
            let quote = isName ? ": \(quoted(name))" : ""
            setting.error("names an environment variable that is not set\(quote)")
            return nil
        }
        return check(secret: text, setting, "names a variable")
    }

    private func check(secret: String, _ setting: Setting, _ source: String) -> String? {
        if secret.isEmpty {
            setting.error("\(source) that is empty")
            return nil
        }
        if (try? checkSecret(secret)) == nil {
            setting.error("\(source) whose text cannot be a field value")
            return nil
        }
        return secret
    }
}

extension Setting {
    /// Reports that the key changes nothing, which whoever wrote it does not expect.
    func hasNoEffect(because reason: String) {
        log.missing("\(label) has no effect: \(reason)", at: node.keyRegion)
    }
}

/// A field value of printable ASCII (RFC 9110, section 5.5). What it throws never quotes it.
private func checkSecret(_ text: String) throws(Misspelling) -> String {
    let isValue =
        text.utf8.count <= 4096 && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
        && text.first != " " && text.last != " "
    if isValue { return text }
    throw Misspelling("must be printable ASCII without spaces around it")
}

/// A field name (RFC 9110, section 5.1).
func checkFieldName(_ text: String) throws(Misspelling) -> String {
    let isToken =
        (1...128).contains(text.utf8.count)
        && text.utf8.allSatisfy {
            isLetterOrDigit($0) || Array("!#$%&'*+-.^_`|~".utf8).contains($0)
        }
    if isToken { return text }
    throw Misspelling("is not a field name: \(quoted(text))")
}
