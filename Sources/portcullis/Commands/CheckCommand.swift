internal import Attestation
internal import Configuration
internal import Policy
internal import Proxy

/// `portcullis check`: validate, and print what the configuration comes to.
struct CheckCommand {
    private let file: String
    private let console: Console

    init(_ file: String, _ console: Console) {
        self.file = file
        self.console = console
    }

    /// Checks, and prints the table or the mistakes.
    func perform() -> ExitCode {
        guard let configuration = LoadedConfiguration(file, console)?.value else { return .wrong }
        let names = RouteWording(configuration)
        let certificates = ListenerCertificates.all(configuration, now: console.now())
        if !complain(about: certificates, configuration) { return .wrong }
        console.print("\(file): ok")
        printRoutes(configuration, names)
        printReplay(configuration)
        printLimits(configuration, names)
        printListeners(configuration)
        printCertificates(certificates, configuration)
        printProjects(configuration)
        printUpstreams(configuration)
        printTracing(configuration)
        return .done
    }

    private func printRoutes(_ configuration: Configuration, _ names: RouteWording) {
        var table = TextTable(
            [
                "host", "path", "methods", "route", "upstream", "app_check", "share", "replay",
                "apps",
            ])
        for row in RouteRow.inPrecedenceOrder(configuration.routes.routes) {
            let route = row.route
            table.append([
                row.host ?? "any", route.path, names.methods(of: route), route.name,
                names.upstream(of: route), route.mode.rawValue, names.share(of: route),
                names.replay(of: route), names.apps(of: route),
            ])
        }
        console.print("\nRoutes, the most specific first:")
        console.print(table.description)
    }

    private func printReplay(_ configuration: Configuration) {
        if !configuration.claimsTokens { return }
        let settings = configuration.replay
        var table = TextTable([
            "store", "where", "limited-use up to", "when unavailable", "SIGUSR2",
        ])
        let store = StoreWording(configuration)
        table.append([
            store.name, store.place, spelling(of: settings.limitedUseMaxLifetime),
            settings.whenUnavailable.rawValue, store.upgrade,
        ])
        console.print("\nReplay protection:")
        console.print(table.description)
    }

    private func printLimits(_ configuration: Configuration, _ names: RouteWording) {
        let limited = configuration.routes.routes.filter { $0.rateLimit != nil }
        let verifications = configuration.server.verifications
        if limited.isEmpty && configuration.projects.isEmpty { return }
        var table = TextTable(["limit", "of each client", "clients", "memory, at most"])
        for route in limited {
            guard let limit = route.rateLimit else { continue }
            table.append([
                "route \(route.name)", "\(names.limit(of: route)); \(limit.networks)",
                String(limit.maxEntries), memory(maxEntries: limit.maxEntries),
            ])
        }
        if !configuration.projects.isEmpty {
            let isOff = verifications.bucket == nil
            table.append([
                "verifications", RouteWording.verifications(verifications),
                isOff ? "-" : String(verifications.maxEntries),
                isOff ? "-" : memory(maxEntries: verifications.maxEntries),
            ])
        }
        console.print("\nLimits:")
        console.print(table.description)
    }

    private func memory(maxEntries: Int) -> String {
        "\((RateLimits.byteLimit(maxEntries: maxEntries) + 1023) >> 10) KiB"
    }

    private func printListeners(_ configuration: Configuration) {
        var table = TextTable(["listen", "serves", "believes", "from"])
        for listener in configuration.listeners {
            let trusted =
                (listener.trustsLocalPeers ? ["its local peers"] : [])
                + listener.trustedProxies.map(\.description)
            table.append([
                listener.listen.description, serves(listener), believes(listener),
                trusted.isEmpty ? "nobody" : trusted.joined(separator: ", "),
            ])
        }
        if let admin = configuration.admin {
            let serves = admin.token == nil ? "admin, read only" : "admin, changes with a token"
            table.append([admin.listen.description, serves, "nothing", "nobody"])
        }
        console.print("\nListeners:")
        console.print(table.description)
    }

    /// - Returns: whether the proxy could start with them.
    private func complain(
        about certificates: [ListenerCertificates], _ configuration: Configuration
    ) -> Bool {
        for listener in certificates {
            for warning in listener.warnings {
                console.complain("\(file): warning: listener \(listener.listen): \(warning)")
            }
        }
        var mistakes = certificates.flatMap { listener in
            listener.mistakes.map { "\(file): error: listener \(listener.listen): \($0)" }
        }
        for upstream in configuration.upstreams {
            mistakes += ListenerCertificates.mistakes(of: upstream, now: console.now()).map {
                "\(file): error: upstream \(upstream.name): \($0)"
            }
        }
        for mistake in mistakes { console.complain(mistake) }
        return mistakes.isEmpty
    }

    private func printCertificates(
        _ certificates: [ListenerCertificates], _ configuration: Configuration
    ) {
        if certificates.isEmpty { return }
        var table = TextTable(["listen", "certificate", "names", "expires", "key", "routes"])
        for listener in certificates {
            for row in listener.rows(configuration.routes.routes) { table.append(row) }
        }
        console.print("\nCertificates, the first of a listener for all other names:")
        console.print(table.description)
    }

    private func printProjects(_ configuration: Configuration) {
        if configuration.projects.isEmpty { return }
        var table = TextTable(["project", "number", "issuer", "keys"])
        for source in configuration.projects {
            table.append([
                source.project.name, source.project.number, source.project.issuer,
                source.keys.description,
            ])
        }
        console.print("\nProjects:")
        console.print(table.description)
    }

    /// What its trusted proxies may say about a client.
    private func believes(_ listener: Listener) -> String {
        if listener.trustedProxies.isEmpty && !listener.trustsLocalPeers { return "nothing" }
        let fields =
            switch listener.forwardingFields {
            case .xForwarded: "X-Forwarded-*"
            case .forwarded: "Forwarded"
            }
        return listener.expectsProxyHeader ? "PROXY headers, \(fields)" : fields
    }

    private func serves(_ listener: Listener) -> String {
        let preferences: [ClientProtocol] = [.http2, .http1]
        let protocols = preferences.filter(listener.protocols.contains).map(\.rawValue)
        let authority = listener.tls?.clientCA == nil ? "" : ", client certificates"
        let kernel = listener.tls?.usesKernel == true ? " of the kernel" : ""
        return protocols.joined(separator: ", ")
            + (listener.tls == nil ? "" : " over TLS" + kernel + authority)
    }

    private func speaks(_ upstream: Upstream) -> String {
        let name = upstream.serverProtocol.rawValue
        return upstream.tls.map { "\(name) over TLS with \($0.name)" } ?? name
    }

    private func printTracing(_ configuration: Configuration) {
        guard let tracing = configuration.tracing else { return }
        var table = TextTable(["otlp", "service", "of new traces", "continues traces of"])
        let percent = UInt32((tracing.share * 100_000_000).rounded())
        table.append([
            redacted(tracing.url), tracing.serviceName, formatShare(percent),
            tracing.parents == .all ? "everybody" : "trusted proxies",
        ])
        console.print("\nTracing:")
        console.print(table.description)
    }

    private func printUpstreams(_ configuration: Configuration) {
        if configuration.upstreams.isEmpty { return }
        var table = TextTable(["upstream", "balance", "speaks", "servers"])
        for upstream in configuration.upstreams {
            table.append([
                upstream.name, upstream.balance.rawValue, speaks(upstream),
                upstream.servers.map(\.description).joined(separator: ", "),
            ])
        }
        console.print("\nUpstreams:")
        console.print(table.description)
    }
}
