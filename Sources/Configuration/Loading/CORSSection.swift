internal import Policy

/// `cors` of a route.
extension ConfigurationLoader {
    /// `cors` of a route; nil when it is not there.
    func readCORS(_ route: TableReader) -> CORS? {
        guard let table = route.table("cors", schema: .cors) else { return nil }
        let origins = table.required(
            "allow_origins", hint: "such as allow_origins = [\"https://app.example.com\"]")
        var cors = CORS(allowOrigins: [])
        for element in origins?.elements("origins") ?? [] {
            guard let origin = element.string(checkOrigin) else { continue }
            cors.allowOrigins.append(origin)
        }
        if let answers = table.setting("answer_preflights")?.boolean() {
            cors.answerPreflights = answers
        }
        if let setting = table.setting("allow_credentials"), let allows = setting.boolean() {
            cors.allowCredentials = allows
            if allows, cors.allowOrigins.contains("*") {
                setting.error(
                    "must be false where \"allow_origins\" is \"*\"",
                    hint: "browsers refuse the combination, and it would open cookies to everybody")
            }
        }
        for element in table.setting("allow_methods")?.elements("methods") ?? [] {
            if let method = element.string(checkMethod) { cors.allowMethods.append(method) }
        }
        for element in table.setting("allow_headers")?.elements("field names") ?? [] {
            if let name = element.string(checkFieldName) { cors.allowHeaders.append(name) }
        }
        if let age = table.setting("max_age")?.duration(in: .zero ... .hours(24)) {
            cors.maxAge = Int(age.components.seconds)
        }
        if !cors.answerPreflights {
            for key in ["allow_methods", "allow_headers", "max_age"] {
                table.setting(key)?.hasNoEffect(
                    because: "\"answer_preflights\" is not true",
                    isSwitchedOff: table.setting("answer_preflights") != nil)
            }
        }
        return cors
    }
}

/// An origin as browsers send it (RFC 6454, section 6.2), or "*".
private func checkOrigin(_ text: String) throws(Misspelling) -> String {
    if text == "*" { return text }
    if text == "null" {
        throw Misspelling(
            "must not be \"null\"", hint: "any sandboxed page can send that origin")
    }
    let example = "write an origin such as \"https://app.example.com\""
    guard text.contains("://") else {
        throw Misspelling(
            "is not an origin: \(quoted(text))",
            suggestion: HostText.isName(text) ? "https://" + text : nil, hint: example)
    }
    if text.contains("*") {
        throw Misspelling(
            "has a wildcard: \(quoted(text))", hint: "list the origins, or write \"*\" for all")
    }
    let url = try URLText(text)
    let origin = String(text.dropLast(url.rest.utf8.count)).lowercased()
    if !url.rest.isEmpty {
        throw Misspelling("must not have a path: \(quoted(text))", suggestion: origin)
    }
    if origin != text {
        throw Misspelling("must be lower case: \(quoted(text))", suggestion: origin)
    }
    let defaultPort: UInt16? = ["https": 443, "http": 80][url.scheme]
    if let port = url.port, port == defaultPort {
        throw Misspelling(
            "must not have the default port: \(quoted(text))",
            suggestion: String(text.dropLast(":\(port)".count)), hint: "browsers leave it out")
    }
    return text
}
