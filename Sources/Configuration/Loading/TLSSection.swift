internal import Policy

/// `tls` of listeners and upstreams. There is no key that switches verification off.
extension ConfigurationLoader {
    /// `tls` of a listener; nil when it is not there.
    func readTLS(of listener: TableReader) -> ListenerTLS? {
        guard let table = listener.table("tls", schema: .listenerTLS) else { return nil }
        var tls = ListenerTLS(certificates: [])
        let certificates = table.required(
            "certificates",
            hint: "certificates = [ { certificate = \"/etc/portcullis/api.pem\", "
                + "key = \"/etc/portcullis/api.key\" } ]")
        for element in certificates?.elements("tables") ?? [] {
            guard let files = readCertificate(element) else { continue }
            if tls.certificates.contains(where: { $0.certificate == files.certificate }) {
                element.error("is there twice: \(quoted(files.certificate))")
            }
            tls.certificates.append(files)
        }
        tls.clientCA = readPath(table, "client_ca")
        if let version = table.setting("min_version")?.choice(TLSVersion.self) {
            tls.minimumVersion = version
        }
        if let usesKernel = table.setting("kernel")?.boolean() { tls.usesKernel = usesKernel }
        return tls
    }

    private func readCertificate(_ element: Setting) -> TLSCertificate? {
        guard element.node.kind == .table else {
            element.wrongType(
                "a table", hint: "{ certificate = \"api.pem\", key = \"api.key\" }")
            return nil
        }
        guard
            let table = TableReader(
                element.node, label: element.label, schema: .certificate, log: log)
        else { return nil }
        _ = table.required("certificate", hint: "the PEM file of the certificate and its chain")
        _ = table.required("key", hint: "the PEM file of its private key")
        let certificate = readPath(table, "certificate")
        let key = readPath(table, "key")
        let ocsp = readPath(table, "ocsp")
        guard let certificate, let key else { return nil }
        return TLSCertificate(certificate: certificate, key: key, ocsp: ocsp)
    }

    /// `tls` of an upstream; nil when it is not there.
    func readTLS(of upstream: TableReader, servers: [ListenAddress]) -> UpstreamTLS? {
        guard let table = upstream.table("tls", schema: .upstreamTLS) else { return nil }
        var tls = UpstreamTLS(name: readName(table, servers) ?? "")
        tls.ca = readPath(table, "ca")
        let certificate = readPath(table, "certificate")
        let key = readPath(table, "key")
        switch (certificate, key) {
        case (let certificate?, let key?):
            tls.certificate = TLSCertificate(certificate: certificate, key: key, ocsp: nil)
        case (_?, nil): _ = table.required("key", hint: "a certificate is of no use without it")
        case (nil, _?): _ = table.required("certificate", hint: "the key alone proves nothing")
        case (nil, nil): break
        }
        return tls
    }

    /// `name`, or the host of all servers.
    private func readName(_ table: TableReader, _ servers: [ListenAddress]) -> String? {
        if let setting = table.setting("name") { return setting.string(checkServerName) }
        var hosts: Set<String> = []
        for server in servers {
            switch server {
            case .tcp(let host, _): hosts.insert(host.lowercased())
            case .unix: hosts.insert("")
            }
        }
        if let host = hosts.first, hosts.count == 1, !host.isEmpty { return host }
        if servers.isEmpty { return nil }
        log.missing(
            "\(table.label) needs \"name\"", at: table.region,
            hint: "whom the servers' certificates are for: "
                + (hosts.contains("")
                    ? "the path of a socket does not say" : "the servers have several hosts"))
        return nil
    }

    private func readPath(_ table: TableReader, _ key: String) -> String? {
        guard let setting = table.setting(key), let path = setting.string().map(resolved) else {
            return nil
        }
        // What is wrong with one that is there is said where it is used.
        if surroundings.mode(path) == nil { warnIfUnreadable(path, setting) }
        return path
    }
}

/// A name or address that a server's certificate can be for.
private func checkServerName(_ text: String) throws(Misspelling) -> String {
    if AddressText.isLiteral(text) { return text }
    let name = try HostText.pattern(text)
    if name.hasPrefix("*.") {
        throw Misspelling(
            "must be one name: \(quoted(text))",
            hint: "the one that the servers' certificate is for")
    }
    return name
}
