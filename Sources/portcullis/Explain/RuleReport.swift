internal import Configuration
internal import Policy

/// The rules of a route, for `explain`.
struct RuleReport {
    private let route: Route
    private let wording: RouteWording
    private let configuration: Configuration

    init(_ route: Route, _ configuration: Configuration) {
        self.route = route
        self.configuration = configuration
        wording = RouteWording(configuration)
    }

    /// Prints one line for each rule.
    func print(_ console: Console) {
        console.print("\nRules")
        for (name, value) in lines {
            let padding = String(repeating: " ", count: max(1, 18 - name.count))
            console.print("  \(name)\(padding)\(value)")
        }
    }

    private var lines: [(String, String)] {
        var lines = [("upstream", wording.upstream(of: route)), ("app_check", route.mode.rawValue)]
        if route.mode == .enforce {
            lines.append(("enforce_percent", formatShare(route.enforcedShare)))
            lines.append(("sticky_by", "\(RouteWording.stickyBy(route)), seed \"\(route.seed)\""))
        }
        if route.mode != .off {
            let projects = route.projects.map { $0.map(wording.project).joined(separator: ", ") }
            lines.append(("projects", projects ?? "every one"))
            lines.append(("apps", wording.apps(of: route)))
        }
        lines += limitLines
        lines += replayLines
        if route.webSocketToken == .protocol {
            lines.append(("websocket_token", "protocol: an entry appcheck.TOKEN will do"))
        }
        lines.append(("forward_token", route.forwardToken ? "yes" : "no, removed on the way"))
        if let cors = route.cors {
            let origins = cors.allowOrigins.joined(separator: ", ")
            let preflights = cors.answerPreflights ? "answered here" : "forwarded"
            lines.append(("cors", "\(origins); preflights are \(preflights)"))
        }
        return lines
    }

    private var limitLines: [(String, String)] {
        var lines: [(String, String)] = []
        if let limit = route.rateLimit {
            let text =
                "\(wording.limit(of: route)); \(limit.networks); \(limit.maxEntries) clients are "
                + "told apart"
            lines.append(("rate_limit", text))
        }
        if route.mode != .off {
            lines.append(
                (
                    "verifications",
                    RouteWording.verifications(configuration.server.verifications)
                ))
        }
        return lines
    }

    private var replayLines: [(String, String)] {
        if route.replay == .off { return [("replay", "off")] }
        let settings = configuration.replay
        let store = StoreWording(configuration)
        let own = route.whenUnavailable.map { "\($0.rawValue), of this route" }
        return [
            ("replay", route.replay.rawValue),
            ("store", "\(store.name): \(store.place)"),
            (
                "limited_use",
                "tokens that live for \(spelling(of: settings.limitedUseMaxLifetime)) at most"
            ),
            ("when_unavailable", own ?? settings.whenUnavailable.rawValue),
        ]
    }
}
