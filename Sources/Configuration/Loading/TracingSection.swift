internal import Policy

/// `[tracing]`.
extension ConfigurationLoader {
    /// `[tracing]`; nil when it is not there.
    func readTracing(_ root: TableReader) -> Tracing? {
        guard let table = root.table("tracing", schema: .tracing, label: "[tracing]") else {
            return nil
        }
        var tracing = Tracing(url: "")
        if let name = table.setting("service_name")?.string(checkServiceName) {
            tracing.serviceName = name
        }
        if let percent = table.setting("sample")?.percentage() { tracing.share = percent / 100 }
        if let parents = table.setting("parents")?.choice(Tracing.Parents.self) {
            tracing.parents = parents
        }
        tracing.authorityFile = readAuthority("ca", table)
        tracing.egressProxy = table.setting("egress_proxy")?.string(readEgressProxy)
        let limits: ClosedRange<Duration> = .milliseconds(100) ... .minutes(1)
        if let timeout = table.setting("timeout")?.duration(in: limits) {
            tracing.timeout = timeout
        }
        if let count = table.setting("queue")?.integer(in: 128...100_000) { tracing.queue = count }
        tracing.headers = readRequestFields(
            "headers", of: table, ours: ["content-type", "content-encoding"],
            hint: "headers = { Authorization = { env = \"OTLP_AUTHORIZATION\" } }")
        let hint = "such as otlp = \"http://127.0.0.1:4318/v1/traces\""
        guard let url = table.required("otlp", hint: hint), let text = url.string(checkCollector)
        else { return nil }
        tracing.url = text
        if let secret = table.setting("headers"), !tracing.headers.isEmpty,
            let target = try? URLText(text), target.scheme == "http",
            !AddressText.isLoopback(host: target.host)
        {
            secret.warning(
                "go over plain http", hint: "whoever is on the way can read them: use https")
        }
        return tracing
    }
}

private func checkServiceName(_ text: String) throws(Misspelling) -> String {
    if text.utf8.count <= 255, text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text }
    throw Misspelling("must be printable ASCII, at most 255 characters")
}

/// OTLP/HTTP has a path of its own for traces, which base URLs of other programs lack.
private func checkCollector(_ text: String) throws(Misspelling) -> String {
    let url = try URLText(text)
    guard url.scheme == "http" || url.scheme == "https" else {
        throw Misspelling(
            "must be an http or https URL: \(quoted(redacted(text)))",
            hint: "spans are sent as OTLP over HTTP; gRPC is not spoken")
    }
    if url.rest.isEmpty || url.rest == "/" {
        let base = text.hasSuffix("/") ? String(text.dropLast()) : text
        throw Misspelling(
            "has no path: \(quoted(text))", suggestion: base + "/v1/traces",
            hint: "collectors take traces at /v1/traces")
    }
    return text
}
