internal import Policy

/// `[upstream.NAME]`.
extension ConfigurationLoader {
    /// Every `[upstream.NAME]`, in file order.
    mutating func readUpstreams(_ root: TableReader) -> [Located<Upstream>] {
        root.namedTables("upstream", schema: .upstream).map { name, table in
            name.checkKeyAsLabel()
            upstreams.append(name.node.key)
            let upstream = Upstream(name: name.node.key, servers: [])
            guard let table else { return Located(value: upstream, region: name.region) }
            return Located(value: readUpstream(upstream, table), region: table.region)
        }
    }

    private func readUpstream(_ initial: Upstream, _ table: TableReader) -> Upstream {
        var upstream = initial
        upstream.servers = readServers(table)
        readBalance(table, into: &upstream)
        if let count = table.setting("idle_connections")?.integer(in: 0...10_000) {
            upstream.idleConnections = count
        }
        upstream.tls = readTLS(of: table, servers: upstream.servers)
        readProtocol(table, into: &upstream)
        readTimeouts(table, into: &upstream)
        readHealth(table, into: &upstream)
        readRetries(table, into: &upstream)
        readLimits(table, into: &upstream)
        if let isWanted = table.setting("forwarded")?.boolean() {
            upstream.sendsForwarded = isWanted
        }
        return upstream
    }

    private func readProtocol(_ table: TableReader, into upstream: inout Upstream) {
        guard let setting = table.setting("protocol"), let name = setting.string() else { return }
        guard let known = Upstream.ServerProtocol(rawValue: name) else {
            setting.error(
                "is no protocol: \(quoted(name))",
                hint: "known: "
                    + Upstream.ServerProtocol.allCases.map { "\"\($0.rawValue)\"" }
                    .joined(separator: ", "))
            return
        }
        upstream.serverProtocol = known
        let isEncrypted = table.setting("tls") != nil
        if known == .http2 && !isEncrypted {
            setting.error(
                "is \"h2\", which needs \"tls\"", suggestion: "h2c",
                hint: "\"h2c\" is HTTP/2 without encryption")
        } else if known == .h2c && isEncrypted {
            setting.error(
                "is \"h2c\", which is HTTP/2 without \"tls\"", suggestion: "h2")
        }
    }

    private func readServers(_ table: TableReader) -> [ListenAddress] {
        let setting = table.required("servers", hint: "such as servers = [\"127.0.0.1:9000\"]")
        var servers: [ListenAddress] = []
        var seen: Set<ListenAddress> = []
        for element in setting?.elements("addresses") ?? [] {
            guard let server = element.string(AddressText.connect) else { continue }
            if !seen.insert(server).inserted {
                element.error("is there twice: \(quoted(element.node.string ?? ""))")
            }
            servers.append(server)
        }
        return servers
    }

    private func readTimeouts(_ table: TableReader, into upstream: inout Upstream) {
        guard let timeouts = table.table("timeouts", schema: .timeouts) else { return }
        let shortest = Duration.milliseconds(10)
        if let connect = timeouts.setting("connect")?.duration(in: shortest ... .minutes(1)) {
            upstream.connectTimeout = connect
        }
        if let head = timeouts.setting("response_header")?.duration(in: shortest ... .hours(1)) {
            upstream.responseHeaderTimeout = head
        }
        if let idle = timeouts.setting("idle")?.duration(in: shortest ... .hours(24)) {
            upstream.idleTimeout = idle
        }
    }

    /// An upstream that is one of our own listeners would forward every request to itself.
    func checkForLoops(_ upstreams: [Located<Upstream>], listeners: [Located<Listener>]) {
        for upstream in upstreams {
            for server in upstream.value.servers where AddressText.isLoopback(server) {
                let loop = listeners.first { AddressText.overlap($0.value.listen, server) }
                guard let loop else { continue }
                log.error(
                    "[upstream.\(printable(upstream.value.name))] forwards to our own [[listener]] "
                        + "on line \(loop.region.start.line): \"\(server)\"",
                    at: upstream.region)
            }
        }
    }
}
