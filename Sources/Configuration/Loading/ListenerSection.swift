internal import Policy

/// `[[listener]]`.
extension ConfigurationLoader {
    /// Every `[[listener]]`, in file order.
    func readListeners(_ root: TableReader) -> [Located<Listener>] {
        if root.setting("listener") == nil {
            log.missing(
                "there is no [[listener]]", at: nil,
                hint: "add [[listener]] with listen = \"127.0.0.1:8080\"")
        }
        let tables = root.tables("listener", schema: .listener)
        let most = 256
        if tables.count > most {
            log.error("more than \(most) listeners", at: tables[most].region)
        }
        return tables.prefix(most).compactMap(readListener)
    }

    private func readListener(_ table: TableReader) -> Located<Listener>? {
        let protocols = table.setting("protocols").map(readProtocols)
        let limits = readLimits(table)
        let tls = readTLS(of: table)
        let listen = table.required("listen", hint: "such as listen = \"127.0.0.1:8080\"")
        guard let listen, let address = listen.string(AddressText.listen) else { return nil }
        var listener = Listener(name: listen.node.string ?? "", listen: address)
        readTrust(table, into: &listener)
        if let protocols, !protocols.isEmpty { listener.protocols = protocols }
        listener.limits = limits
        listener.tls = tls
        return Located(value: listener, region: listen.region)
    }

    private func readProtocols(_ setting: Setting) -> Set<ClientProtocol> {
        let elements = setting.elements(
            "strings", emptyHint: "leave the key out to serve \"http/1.1\"")
        return Set(
            (elements ?? []).compactMap { element in
                guard let name = element.string() else { return nil }
                let known = ClientProtocol(rawValue: name)
                if known == nil {
                    element.error(
                        "is no protocol: \(quoted(name))", hint: "known: \"http/1.1\", \"h2\"")
                }
                return known
            })
    }

    private func readLimits(_ listener: TableReader) -> ListenerLimits {
        var limits = ListenerLimits()
        guard let table = listener.table("limits", schema: .limits) else { return limits }
        if let bytes = table.setting("header_bytes")?.size(in: 1 << 10...1 << 20) {
            limits.headerBytes = Int(clamping: bytes)
        }
        readCostLimits(table, into: &limits)
        if let headers = table.setting("headers")?.integer(in: 1...1000) {
            limits.headers = headers
        }
        if let body = table.setting("body")?.size(in: 0...1 << 40) { limits.body = body }
        let timeouts: ClosedRange<Duration> = .milliseconds(100) ... .hours(24)
        if let timeout = table.setting("header_timeout")?.duration(in: timeouts) {
            limits.headerTimeout = timeout
        }
        if let timeout = table.setting("idle_timeout")?.duration(in: timeouts) {
            limits.idleTimeout = timeout
        }
        return limits
    }

    /// Two sockets on one address are a mistake, and the admin API on a public one is a dangerous
    /// one (pitfall O7).
    func checkAddresses(_ listeners: [Located<Listener>], admin: Located<Admin>?) {
        var seen: [Located<Listener>] = []
        for listener in listeners {
            let address = listener.value.listen
            if let other = seen.first(where: { AddressText.overlap($0.value.listen, address) }) {
                log.error(
                    "two listeners on one address: \(quoted(listener.value.name)) and "
                        + "\(quoted(other.value.name)) on line \(other.region.start.line)",
                    at: listener.region)
            }
            seen.append(listener)
        }
        guard let admin else { return }
        if let shared = seen.first(where: {
            AddressText.overlap($0.value.listen, admin.value.listen)
        }) {
            log.error(
                "\"listen\" in [admin] is the address of the [[listener]] on line "
                    + "\(shared.region.start.line)",
                at: admin.region, hint: "the admin API never shares a listener with the public")
        }
    }
}
