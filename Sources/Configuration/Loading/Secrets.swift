/// What a secret has to be for what it is used for.
struct SecretKind {
    /// Completes "names a file whose text cannot be …".
    let phrase: String
    /// Continues a sentence that starts with the key.
    let requirement: String
    let accepts: @Sendable (String) -> Bool

    /// A field value of printable ASCII (RFC 9110, section 5.5).
    static let fieldValue = SecretKind(
        phrase: "a field value", requirement: "must be printable ASCII without spaces around it"
    ) { text in
        text.utf8.count <= 4096 && text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
            && text.first != " " && text.last != " "
    }

    /// What a server compares, whatever the alphabet.
    static let password = SecretKind(
        phrase: "a password",
        requirement: "must have at most 4096 bytes and no control characters"
    ) { text in
        text.utf8.count <= 4096 && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}

extension ConfigurationLoader {
    /// A secret in one of three spellings: the text itself, `{ file = "…" }`, `{ env = "…" }`. What
    /// is reported never quotes it.
    func readSecret(_ setting: Setting, _ kind: SecretKind) -> String? {
        if setting.node.kind != .table {
            return setting.string(
                hint: "write \"value\", { file = \"/run/secrets/key\" } or { env = \"NAME\" }"
            ) { text throws(Misspelling) in
                if kind.accepts(text) { return text }
                throw Misspelling(kind.requirement)
            }
        }
        guard let table = TableReader(setting.node, label: setting.label, schema: .secret, log: log)
        else { return nil }
        let file = table.setting("file")
        let variable = table.setting("env")
        switch (file, variable) {
        case (let file?, nil): return readSecretFile(file, kind)
        case (nil, let variable?): return readSecretVariable(variable, kind)
        default:
            log.error("\(setting.label) needs either \"file\" or \"env\"", at: table.region)
            return nil
        }
    }

    private func readSecretFile(_ setting: Setting, _ kind: SecretKind) -> String? {
        guard let path = setting.string().map(resolved) else { return nil }
        guard let bytes = surroundings.file(path) else {
            setting.error("names a file that cannot be read")
            return nil
        }
        // Editors and `echo` end files with a line feed that is no part of the secret.
        let isLineEnd = { (byte: UInt8) in byte == 0x0A || byte == 0x0D }
        let trimmed = Array(bytes.reversed().drop(while: isLineEnd).reversed())
        return check(String(validating: trimmed, as: UTF8.self), setting, "names a file", kind)
    }

    private func readSecretVariable(_ setting: Setting, _ kind: SecretKind) -> String? {
        guard let name = setting.string() else { return nil }
        // Somebody may have put the secret itself here; only what is surely a name is quoted.
        let isName = name.utf8.allSatisfy { isUpperCaseLetter($0) || isDigit($0) || $0 == 0x5F }
        guard let text = surroundings.environment(name) else {
            let quote = isName ? ": \(quoted(name))" : ""
            setting.error("names an environment variable that is not set\(quote)")
            return nil
        }
        return check(text, setting, "names a variable", kind)
    }

    /// - Parameter secret: nil when it is no text.
    private func check(
        _ secret: String?, _ setting: Setting, _ source: String, _ kind: SecretKind
    ) -> String? {
        if secret?.isEmpty == true {
            setting.error("\(source) that is empty")
            return nil
        }
        guard let secret, kind.accepts(secret) else {
            setting.error("\(source) whose text cannot be \(kind.phrase)")
            return nil
        }
        return secret
    }
}
