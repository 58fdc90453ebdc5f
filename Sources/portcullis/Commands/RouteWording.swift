internal import Attestation
internal import Configuration
internal import Policy

/// Words for what a configuration has by index.
struct RouteWording {
    private let configuration: Configuration

    init(_ configuration: Configuration) {
        self.configuration = configuration
    }

    /// "any", or the methods.
    func methods(of route: Route) -> String {
        route.methods.isEmpty ? "any" : route.methods.joined(separator: ",")
    }

    /// The upstream's name.
    func upstream(of route: Route) -> String {
        configuration.upstreams.indices.contains(route.upstream)
            ? configuration.upstreams[route.upstream].name : "?"
    }

    /// "25% by client_ip", or "-" where nothing is enforced.
    func share(of route: Route) -> String {
        guard route.mode == .enforce else { return "-" }
        let share = formatShare(route.enforcedShare)
        return route.enforcedShare == EnforcedShare.everybody
            ? share : "\(share) by \(Self.stickyBy(route))"
    }

    /// The value of `sticky_by`.
    static func stickyBy(_ route: Route) -> String {
        switch route.stickyBy {
        case .clientIP: "client_ip"
        case .field(let name): "header:\(name)"
        case .app: "app"
        }
    }

    /// The value of `replay`, and in brackets the route's own `when_unavailable`.
    func replay(of route: Route) -> String {
        guard route.replay != .off, let own = route.whenUnavailable else {
            return route.replay.rawValue
        }
        return "\(route.replay.rawValue) (\(own.rawValue))"
    }

    /// "100 per 1m (burst 200) by client_network, monitored", or "-".
    func limit(of route: Route) -> String {
        guard let limit = route.rateLimit else { return "-" }
        let burst = limit.burst == limit.requests ? "" : " (burst \(limit.burst))"
        return "\(limit.requests) per \(spelling(of: .seconds(limit.seconds)))\(burst) by "
            + Self.key(of: limit) + (limit.mode == .monitor ? ", monitored" : "")
    }

    /// The value of `key` of a limit.
    static func key(of limit: RateLimit) -> String {
        switch limit.key {
        case .clientNetwork: "client_network"
        case .app: "app"
        case .field(let name): "header:\(name)"
        }
    }

    /// The limit on bad tokens.
    static func verifications(_ limit: VerificationLimit) -> String {
        limit.bucket == nil
            ? "no limit"
            : "\(limit.perSecond) bad tokens a second (burst \(limit.burst)) of each network, "
                + "\(limit.networks)"
    }

    /// The apps that may call a route: aliases, where all of a project's are meant its name.
    func apps(of route: Route) -> String {
        if route.mode == .off { return "-" }
        if let apps = route.apps { return apps.map(name).joined(separator: ",") }
        guard let projects = route.projects else { return "any" }
        return projects.map { "any of \(project($0))" }.joined(separator: ",")
    }

    /// A project's name.
    func project(_ index: Int) -> String {
        configuration.projects.indices.contains(index)
            ? configuration.projects[index].project.name : "?"
    }

    /// "ios", or "staging/ios" where several projects are served.
    func name(_ app: AppIndex) -> String {
        guard configuration.projects.indices.contains(app.project) else { return "?" }
        let project = configuration.projects[app.project].project
        guard project.apps.indices.contains(app.app) else { return "?" }
        let alias = project.apps[app.app].alias
        return configuration.projects.count > 1 ? "\(project.name)/\(alias)" : alias
    }
}

/// A share as people write it: "25%", "0.5%".
func formatShare(_ share: UInt32) -> String {
    let (whole, millionths) = share.quotientAndRemainder(dividingBy: 1_000_000)
    if millionths == 0 { return "\(whole)%" }
    let digits = String(millionths)
    let decimals = String(repeating: "0", count: 6 - digits.count) + digits
    return "\(whole).\(String(decimals.reversed().drop { $0 == "0" }.reversed()))%"
}
