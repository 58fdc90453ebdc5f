internal import Policy

/// One route at one of its hosts, as the route table lists it.
struct RouteRow {
    let route: Route
    /// Index of the route in the configuration.
    let index: Int
    /// Nil for every host.
    let host: String?

    /// Every route once for each of its hosts, the most specific first: the order in which the
    /// proxy prefers them. Where no request could have either, the order is for the reader's eye.
    static func inPrecedenceOrder(_ routes: [Route]) -> [RouteRow] {
        let rows = routes.enumerated().flatMap { index, route in
            route.hosts.isEmpty
                ? [RouteRow(route: route, index: index, host: nil)]
                : route.hosts.map { RouteRow(route: route, index: index, host: $0) }
        }
        return rows.sorted { $0.rank.lexicographicallyPrecedes($1.rank) }
    }

    /// What is compared, the weightiest first.
    private var rank: [RankPart] {
        let isPrefix = route.path.hasSuffix("/*")
        return [
            .number(host == nil ? 2 : isWildcard ? 1 : 0),
            // Of wildcards the longer one is preferred; exact hosts never meet.
            .number(isWildcard ? -(host?.utf8.count ?? 0) : 0),
            .text(host ?? ""),
            .number(isPrefix ? 1 : 0),
            .number(isPrefix ? -route.path.split(separator: "/").count : 0),
            .text(route.path),
            .number(route.methods.isEmpty ? 1 : 0),
            .number(index),
        ]
    }

    private var isWildcard: Bool { host?.hasPrefix("*.") ?? false }
}

private enum RankPart: Comparable {
    case number(Int)
    case text(String)
}
