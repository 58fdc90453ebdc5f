public import Configuration
public import Proxy
public import Reactor

/// What the parts of an upstream's status come from.
public struct UpstreamSources: Sendable {
    /// What the loops said; nil for one that does not answer.
    public var loops: [[LoopUpstreamStatus]?]
    /// What the checks know.
    public var health: UpstreamHealthStatus
    /// What operators took out of service.
    public var drains: ServerDrains
    public var now: MonotonicInstant

    public init(
        loops: [[LoopUpstreamStatus]?], health: UpstreamHealthStatus, drains: ServerDrains,
        now: MonotonicInstant
    ) {
        self.loops = loops
        self.health = health
        self.drains = drains
        self.now = now
    }
}

extension StatusReport.UpstreamPart {
    /// - Parameter addresses: What a server's name means now.
    public init(
        _ upstream: Upstream, _ sources: UpstreamSources, addresses: (ListenAddress) -> [String]
    ) {
        let loops = sources.loops.map { $0?.first { $0.name == upstream.name } }
        var seen: Set<String> = []
        var servers: [StatusReport.ServerPart] = []
        for server in upstream.servers {
            let labels = addresses(server)
            let configured = server.description
            if labels.isEmpty {
                servers.append(
                    .init(
                        server: configured, configured: configured, state: .unresolved,
                        why: "its name was not found"))
            }
            for label in labels where seen.insert(label).inserted {
                let observed = loops.map { $0?.servers.first { $0.label == label } }
                servers.append(
                    .init(label, configured, of: upstream.name, observed, sources))
            }
        }
        let works = servers.count { $0.state == .ready || $0.state == .returning }
        self.init(
            name: upstream.name, balance: upstream.balance.rawValue,
            protocol: upstream.serverProtocol.rawValue, available: works, total: servers.count,
            panic: loops.contains { $0?.isPanicking == true },
            waiting: loops.reduce(0) { $0 + ($1?.waitingCount ?? 0) }, servers: servers)
    }
}

extension StatusReport.ServerPart {
    fileprivate init(
        _ label: String, _ configured: String, of upstream: String,
        _ observed: [LoopUpstreamStatus.Server?], _ sources: UpstreamSources
    ) {
        let known = observed.compactMap(\.self)
        let (state, why) = Self.state(label, of: upstream, known, loops: observed.count, sources)
        self.init(server: label, configured: configured, state: state, why: why)
        inFlight = known.reduce(0) { $0 + $1.activeCount }
        idleConnections = known.reduce(0) { $0 + $1.idleCount }
        let failures = known.compactMap { server in
            server.lastFailure.flatMap { failure in server.lastFailureAt.map { (failure, $0) } }
        }
        if let (failure, at) = failures.max(by: { $0.1 < $1.1 }) {
            lastFailure = failure.rawValue
            lastFailureSecondsAgo = max(0, sources.now.microseconds(since: at) / 1_000_000)
        }
    }

    private static func state(
        _ label: String, of upstream: String, _ known: [LoopUpstreamStatus.Server], loops: Int,
        _ sources: UpstreamSources
    ) -> (State, why: String?) {
        if let drain = sources.drains.all.first(where: { $0.covers(label, of: upstream) }) {
            return (.draining, "by \(drain.by) at \(InternetTime.text(drain.since))")
        }
        if known.isEmpty { return (.unknown, "no event loop answers") }
        let check = sources.health.servers.first { $0.upstream == upstream && $0.server == label }
        if let check, !check.isHealthy {
            return (.unhealthy, "its checks fail\(check.reason.map { ": \($0)" } ?? "")")
        }
        let ejections = known.compactMap(\.ejectedUntil)
        if let last = ejections.max() {
            let seconds = max(0, last.microseconds(since: sources.now)) / 1_000_000 + 1
            let failure = known.compactMap(\.lastFailure).first?.rawValue ?? "error_share"
            return (
                .ejected,
                "\(failure), by \(ejections.count) of \(loops) loops for another \(seconds) s"
            )
        }
        let share = known.map(\.share).min() ?? 1
        if share >= 1 { return (.ready, nil) }
        return (.returning, "gets \(Int(share * 100)) % of its part (slow_start)")
    }
}
