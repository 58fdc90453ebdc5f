internal import Policy

/// Which route serves a request, and why none of the others does.
struct RouteChoice {
    /// Why a route that has something in common with the request does not serve it.
    enum Obstacle: String {
        case host = "another host"
        case path = "another path"
        case method = "another method"
        case lessSpecific = "it would, but is less specific"
    }

    let match: RouteMatch?
    /// In order of precedence, at most ten; those that would serve the request first.
    let others: [(route: Route, obstacle: Obstacle)]

    init(_ table: RouteTable, _ request: SentRequest) {
        let match = table.find(
            host: request.host.span, path: request.path.span, method: request.method.span)
        self.match = match
        var seen: Set<Int> = []
        let candidates = RouteRow.inPrecedenceOrder(table.routes).compactMap { row in
            row.index != match?.route && seen.insert(row.index).inserted
                ? Self.obstacle(row.route, request).map { (route: row.route, obstacle: $0) } : nil
        }
        let would = candidates.filter { $0.obstacle == .lessSpecific }
        others = Array((would + candidates.filter { $0.obstacle != .lessSpecific }).prefix(10))
    }

    /// Nil for a route that differs in more than one thing: it is of no interest. Asks tables of
    /// one route, so that there is no second reading of hosts and paths.
    private static func obstacle(_ route: Route, _ request: SentRequest) -> Obstacle? {
        if serves(route, request) { return .lessSpecific }
        var changed = route
        changed.methods = []
        if serves(changed, request) { return .method }
        changed = route
        changed.hosts = []
        if serves(changed, request) { return .host }
        changed = route
        changed.path = "/*"
        return !route.hosts.isEmpty && serves(changed, request) ? .path : nil
    }

    private static func serves(_ route: Route, _ request: SentRequest) -> Bool {
        let table = try? RouteTable([route])
        let index = table?.match(
            host: request.host.span, path: request.path.span, method: request.method.span)
        return index != nil
    }
}
