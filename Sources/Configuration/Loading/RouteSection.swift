internal import Policy

/// `[[route]]`.
extension ConfigurationLoader {
    /// Reads every route and builds the table. Nil when two routes tie.
    func readRoutes(_ root: TableReader, _ replay: ReplayReading) -> RouteTable? {
        if root.setting("route") == nil {
            log.missing(
                "there is no [[route]]", at: nil,
                hint: "a request without a route is answered 404; add [[route]] with path = \"/*\"")
        }
        var names: [String: Int] = [:]
        var routes: [Located<Route>] = []
        for table in root.tables("route", schema: .route) {
            let name = table.required(
                "name", hint: "the label of the route in logs and metrics; unique")
            if let name, let text = name.string(checkLabel) {
                if let line = names[text] {
                    name.error("is already the name of the route on line \(line): \(quoted(text))")
                } else {
                    names[text] = name.region.start.line
                }
            }
            if let route = readRoute(name?.node.string ?? "", table) {
                routes.append(Located(value: route, region: table.region))
            }
        }
        warnAboutReplay(replay, routes.map(\.value))
        return table(of: routes)
    }

    /// How many pairs of host and method all routes may have: what the table's size is proportional
    /// to.
    private static let mostPairs = 200_000

    private func table(of routes: [Located<Route>]) -> RouteTable? {
        let pairs = routes.reduce(0) { sum, route in
            sum + max(1, route.value.hosts.count) * max(1, route.value.methods.count)
        }
        if pairs > Self.mostPairs {
            log.error(
                "the routes have \(pairs) pairs of host and method, more than \(Self.mostPairs)",
                at: routes.last?.region)
            return nil
        }
        do {
            return try RouteTable(routes.map(\.value))
        } catch {
            for (first, second) in error.pairs {
                guard routes.indices.contains(first), routes.indices.contains(second) else {
                    continue
                }
                let other = routes[first]
                log.error(
                    "route \(quoted(routes[second].value.name)) serves the same requests as route "
                        + "\(quoted(other.value.name)) on line \(other.region.start.line)",
                    at: routes[second].region,
                    hint: "two routes that tie must differ in host, path or methods")
            }
            return nil
        }
    }

    private func readRoute(_ name: String, _ table: TableReader) -> Route? {
        let path = table.required("path", hint: "such as path = \"/v1/*\"; \"/*\" is every path")
        let pattern = path?.string(PathText.pattern)
        let upstream = table.required("upstream").flatMap(upstreams.resolve)
        var route = Route(name: name, path: pattern ?? "/", upstream: upstream ?? 0)
        route.hosts = readDistinct(
            table.setting("hosts"), "host names", "leave the key out for every host",
            HostText.pattern)
        route.methods = readDistinct(
            table.setting("methods"), "methods", "leave the key out for every method", checkMethod)
        if let forward = table.setting("forward_token")?.boolean() { route.forwardToken = forward }
        readProtection(table, into: &route)
        route.cors = readCORS(table)
        return pattern == nil ? nil : route
    }

    /// Who may call the route, and what happens to the others.
    private func readProtection(_ table: TableReader, into route: inout Route) {
        let setting = table.setting("app_check")
        let mode = setting == nil ? route.mode : setting?.choice(Route.Mode.self)
        readAccepted(table, into: &route)
        readShare(table, mode: mode, into: &route)
        readReplayRules(table, appCheck: mode, into: &route)
        route.rateLimit = readRateLimit(table, appCheck: mode)
        readWebSocketToken(table, mode: mode, into: &route)
        guard let mode else { return }
        route.mode = mode
        if mode != .off, !hasProjects {
            log.missing(
                "app_check = \"\(mode.rawValue)\" needs a [project.NAME] whose tokens are accepted",
                at: setting?.region ?? table.region,
                hint: setting == nil ? "\"app_check\" is \"monitor\" where it is left out" : nil)
        }
        if mode == .off {
            for key in ["apps", "projects"] {
                if let setting = table.setting(key) {
                    setting.warning("has no effect with app_check = \"off\"")
                }
            }
        }
    }

    private func readAccepted(_ table: TableReader, into route: inout Route) {
        if let setting = table.setting("projects") {
            var indices: [Int] = []
            let elements = setting.elements(
                "project names", emptyHint: "leave the key out for every project")
            for element in elements ?? [] {
                guard let index = projects.resolve(element) else { continue }
                if indices.contains(index) {
                    element.error("is there twice: \(quoted(element.node.string ?? ""))")
                }
                indices.append(index)
            }
            route.projects = indices
            if indices.count != elements?.count { return }
        }
        if let setting = table.setting("apps") {
            let elements = setting.elements(
                "app aliases", emptyHint: "leave the key out for every app of the projects")
            route.apps = (elements ?? []).flatMap { resolveApp($0, in: route.projects) }
        }
    }

    /// The apps that an alias means: in each of the route's projects the one of that name.
    private func resolveApp(_ element: Setting, in accepted: [Int]?) -> [AppIndex] {
        guard let alias = element.string() else { return [] }
        let candidates = accepted ?? Array(aliases.indices)
        let found = candidates.compactMap { project in
            aliases[project].firstIndex(of: alias).map { AppIndex(project: project, app: $0) }
        }
        if !found.isEmpty { return found }
        let elsewhere = aliases.indices.first { aliases[$0].contains(alias) }
        let known = candidates.flatMap { aliases[$0] }
        let suggestion = log.suggestion(for: alias, among: known)
        let hint: String? =
            if let elsewhere {
                "[project.\(printable(projects.names[elsewhere]))] has it, but is not among the "
                    + "route's projects"
            } else if suggestion != nil {
                nil
            } else if known.isEmpty {
                "no project of this route has \"apps\""
            } else {
                "known: " + known.prefix(10).map(printable).joined(separator: ", ")
            }
        element.missing("names no app: \(quoted(alias))", suggestion: suggestion, hint: hint)
        return []
    }

    private func readWebSocketToken(
        _ table: TableReader, mode: Route.Mode?, into route: inout Route
    ) {
        guard let setting = table.setting("websocket_token"),
            let place = setting.choice(Route.WebSocketToken.self)
        else { return }
        route.webSocketToken = place
        guard place == .protocol else { return }
        if mode == .off {
            setting.warning("has no effect with app_check = \"off\"")
        } else if !route.methods.isEmpty, !route.methods.contains("GET") {
            setting.hasNoEffect(because: "a WebSocket begins with GET, which is not a method here")
        }
    }

    private func readShare(_ table: TableReader, mode: Route.Mode?, into route: inout Route) {
        if let seed = table.setting("share_seed")?.string(checkSeed) { route.seed = seed }
        if let setting = table.setting("sticky_by"), let key = setting.string(checkStickyKey) {
            route.stickyBy = key
        }
        guard let setting = table.setting("enforce_percent") else { return }
        if let mode, mode != .enforce {
            setting.hasNoEffect(
                because: "app_check is \"\(mode.rawValue)\", not \"enforce\"",
                isSwitchedOff: table.setting("app_check") != nil)
        }
        guard let share = setting.share(), mode == .enforce else { return }
        route.enforcedShare = share
        if share < EnforcedShare.everybody, route.stickyBy == .app {
            table.setting("sticky_by")?.warning(
                "leaves requests without a token outside the enforced share",
                hint: "they name no app; \"client_ip\" is known of every request")
        }
    }

    /// Strings of which none may be there twice.
    private func readDistinct(
        _ setting: Setting?, _ phrase: String, _ emptyHint: String,
        _ check: (String) throws(Misspelling) -> String
    ) -> [String] {
        var seen: Set<String> = []
        return (setting?.elements(phrase, emptyHint: emptyHint) ?? []).compactMap { element in
            guard let text = element.string(check) else { return nil }
            if !seen.insert(text).inserted { element.error("is there twice: \(quoted(text))") }
            return text
        }
    }
}

private func checkSeed(_ text: String) throws(Misspelling) -> String {
    if EnforcedShare.isSeed(text) { return text }
    throw Misspelling(
        "is not a seed: \(quoted(text))",
        hint: "1 to 32 letters, digits, \"-\", \"_\" and \".\"")
}

func checkStickyKey(_ text: String) throws(Misspelling) -> StickyKey {
    switch text {
    case "client_ip": return .clientIP
    case "app": return .app
    default: break
    }
    let choices = ["client_ip", "app", "header:NAME"]
    guard text.hasPrefix("header:") else {
        throw Misspelling(
            "must be \(alternatives(choices)), not \(quoted(text))",
            suggestion: nearest(to: text, among: choices.prefix(2)))
    }
    let name = String(text.dropFirst("header:".count))
    guard let field = try? checkFieldName(name) else {
        throw Misspelling("names no field: \(quoted(text))")
    }
    return .field(field.lowercased())
}

/// A method (RFC 9110, section 9) that a route can be chosen by.
func checkMethod(_ text: String) throws(Misspelling) -> String {
    guard (try? checkFieldName(text)) != nil, text.utf8.count <= 32 else {
        throw Misspelling("is not a method: \(quoted(text))")
    }
    if text != text.uppercased() {
        throw Misspelling(
            "must be upper case: \(quoted(text))", suggestion: text.uppercased(),
            hint: "methods are case-sensitive")
    }
    if text == "CONNECT" || text == "TRACE" {
        throw Misspelling("is a method that the proxy refuses: \(quoted(text))")
    }
    return text
}
