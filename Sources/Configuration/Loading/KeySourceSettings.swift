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
        source.keysCA = readAuthority("jwks_ca", table)
        if let proxy = table.setting("egress_proxy") {
            source.egressProxy = proxy.string(readEgressProxy)
        }
        source.keysHeaders = readRequestFields(
            "jwks_headers", of: table, ours: ["if-none-match"],
            hint: "jwks_headers = { X-Goog-Api-Key = { env = \"API_KEY\" } }")
        guard case .file = source.keys else { return }
        for key in ["jwks_ca", "egress_proxy", "jwks_headers"] {
            table.setting(key)?.hasNoEffect(
                because: "\"jwks\" is a file", isSwitchedOff: true)
        }
    }

    /// A PEM file of authorities.
    func readAuthority(_ key: String, _ table: TableReader) -> String? {
        guard let setting = table.setting(key), let path = setting.string().map(resolved) else {
            return nil
        }
        warnIfUnreadable(path, setting)
        return path
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

    /// An HTTP proxy that is asked to CONNECT.
    func readEgressProxy(_ text: String) throws(Misspelling) -> ListenAddress {
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

    /// Fields of requests that the proxy makes itself; their values may be secrets.
    ///
    /// - Parameters:
    ///   - ours: Names, in lower case, of fields that such a request has already, beside those of
    ///     every request.
    ///   - hint: What the key looks like.
    func readRequestFields(_ key: String, of table: TableReader, ours: [String], hint: String)
        -> [(name: String, value: String)]
    {
        guard let setting = table.setting(key) else { return [] }
        guard setting.node.kind == .table else {
            setting.wrongType("a table", hint: hint)
            return []
        }
        var headers: [(name: String, value: String)] = []
        var seen: Set<String> = []
        for node in setting.node.children {
            let header = Setting(
                label: "\(quoted(node.key)) in \"\(key)\" of \(table.label)", node: node, log: log,
                isSecret: true)
            checkHeaderName(header, ours: ours, seen: &seen)
            if let value = readSecret(header, .fieldValue) { headers.append((node.key, value)) }
        }
        return headers
    }

    private func checkHeaderName(_ header: Setting, ours: [String], seen: inout Set<String>) {
        let name = header.node.key
        let everywhere = [
            "host", "connection", "content-length", "transfer-encoding", "te", "upgrade",
            "accept-encoding",
        ]
        if (try? checkFieldName(name)) == nil {
            log.error("\(header.label) is not a field name", at: header.node.keyRegion)
        } else if (everywhere + ours).contains(name.lowercased()) {
            log.error("\(header.label) is set by the proxy itself", at: header.node.keyRegion)
        } else if !seen.insert(name.lowercased()).inserted {
            log.error("\(header.label) is there twice", at: header.node.keyRegion)
        }
    }
}

extension Setting {
    /// Reports that the key changes nothing. That is a mistake where whoever wrote it believes that
    /// it does; beside a switch that the file itself turned the other way it is a warning, so that
    /// turning a switch in a hurry never makes a file unusable.
    ///
    /// - Parameter isSwitchedOff: The file says so itself, by another key.
    func hasNoEffect(because reason: String, isSwitchedOff: Bool = false, hint: String? = nil) {
        let message = "\(label) has no effect: \(reason)"
        if isSwitchedOff {
            log.warning(message, at: node.keyRegion, hint: hint)
        } else {
            log.missing(message, at: node.keyRegion, hint: hint)
        }
    }
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
