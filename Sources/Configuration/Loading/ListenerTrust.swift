internal import Policy

/// Whom a listener believes about where a request came from.
extension ConfigurationLoader {
    /// `trusted_proxies`, `forwarding_fields` and `proxy_protocol`.
    func readTrust(_ table: TableReader, into listener: inout Listener) {
        let trusted = table.setting("trusted_proxies")
        let fields = table.setting("forwarding_fields")
        let header = table.setting("proxy_protocol")
        if let trusted { readTrusted(trusted, into: &listener) }
        if let choice = fields?.choice(ForwardingFields.self) {
            listener.forwardingFields = choice
            if trusted == nil { fields?.hasNoEffect(because: "nobody is in \"trusted_proxies\"") }
        }
        guard let header, header.boolean() == true else { return }
        listener.expectsProxyHeader = true
        if trusted == nil {
            header.missing(
                "needs \"trusted_proxies\"",
                hint: "name the addresses of the load balancers that send PROXY headers, such as "
                    + "trusted_proxies = [\"10.0.0.0/8\"]: anybody else could choose the address "
                    + "that it is known by")
        } else if case .unix = listener.listen, !listener.trustsLocalPeers {
            header.error(
                "believes nobody who can connect to \(quoted(listener.listen.description))",
                hint: "peers of a local socket have no address; add \"unix:\" to "
                    + "\"trusted_proxies\" to believe whoever may open it")
        }
    }

    private func readTrusted(_ setting: Setting, into listener: inout Listener) {
        let elements = setting.elements(
            "networks", emptyHint: "leave the key out to believe nobody")
        for element in elements ?? [] {
            guard let text = element.string() else { continue }
            if text == "unix:" {
                readLocalPeers(element, into: &listener)
                continue
            }
            guard let network = IPNetwork(text) else {
                element.error(
                    "is not a network: \(quoted(text))",
                    hint: "write an address or a network such as \"10.0.0.0/8\", "
                        + "without bits behind the prefix")
                continue
            }
            if network.prefix == 0 {
                element.warning(
                    "believes everybody: \(quoted(text))",
                    hint: "any client can then choose the address that it is known by")
            }
            listener.trustedProxies.append(network)
        }
    }

    private func readLocalPeers(_ element: Setting, into listener: inout Listener) {
        guard case .unix = listener.listen else {
            element.error(
                "means nobody here: \"unix:\"",
                hint: "it is for a listener on a local socket, listen = \"unix:/path\"")
            return
        }
        listener.trustsLocalPeers = true
    }
}
