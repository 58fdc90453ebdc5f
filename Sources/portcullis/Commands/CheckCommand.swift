internal import Attestation
internal import Configuration
internal import Policy

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
        console.print("\(file): ok")
        printRoutes(configuration, names)
        printReplay(configuration)
        printListeners(configuration)
        printProjects(configuration)
        printUpstreams(configuration)
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
        var table = TextTable(["store", "where", "limited-use up to", "when unavailable"])
        let store = StoreWording(configuration)
        table.append([
            store.name, store.place, spelling(of: settings.limitedUseMaxLifetime),
            settings.whenUnavailable.rawValue,
        ])
        console.print("\nReplay protection:")
        console.print(table.description)
    }

    private func printListeners(_ configuration: Configuration) {
        var table = TextTable(["listen", "serves", "trusts X-Forwarded-* from"])
        for listener in configuration.listeners {
            let trusted = listener.trustedProxies.map(\.description)
            table.append([
                listener.listen.description, "http/1.1",
                trusted.isEmpty ? "nobody" : trusted.joined(separator: ", "),
            ])
        }
        if let admin = configuration.admin {
            let changes = admin.tokenFile.map { "admin, changes with the token in \($0)" }
            table.append([admin.listen.description, changes ?? "admin, read only", "nobody"])
        }
        console.print("\nListeners:")
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

    private func printUpstreams(_ configuration: Configuration) {
        if configuration.upstreams.isEmpty { return }
        var table = TextTable(["upstream", "balance", "servers"])
        for upstream in configuration.upstreams {
            table.append([
                upstream.name, upstream.balance.rawValue,
                upstream.servers.map(\.description).joined(separator: ", "),
            ])
        }
        console.print("\nUpstreams:")
        console.print(table.description)
    }
}
