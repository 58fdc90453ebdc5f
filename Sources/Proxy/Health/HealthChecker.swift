internal import Configuration
public import Reactor

/// Asks the servers of upstreams with `health` whether they work: once for the process, on the
/// control loop, whatever the number of loops that serve
/// (docs/decisions/0061-health.md).
public actor HealthChecker {
    /// A pause is between 90 % and 110 % of the interval, so that machines do not ask in step.
    private static let jitter = 0.9...1.1
    /// A new server is asked within this time, so that a start does not ask all at once.
    private static let firstPause = Duration.seconds(1)

    private nonisolated let loop: EventLoop
    private let version: String
    private let log: any EventLog
    private let publish: @Sendable (HealthSnapshot) -> Void
    /// In the order of the configuration.
    private var checks: [ServerCheck] = []
    private var counts: [String: [HealthCheckResult: UInt64]] = [:]
    private var change: UInt64 = 0

    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// - Parameters:
    ///   - version: Of this program, for User-Agent.
    ///   - publish: Takes each snapshot in which a verdict changed.
    public init(
        loop: EventLoop, version: String, log: any EventLog,
        publish: @escaping @Sendable (HealthSnapshot) -> Void
    ) {
        self.loop = loop
        self.version = version
        self.log = log
        self.publish = publish
    }

    /// Checks the servers of this configuration from now on. What is known about a server stays
    /// while neither its address nor the way to ask changes; any other one counts as healthy until
    /// it was asked.
    ///
    /// - Parameter unhealthy: Servers that somebody else has found to be unhealthy.
    public func adopt(
        _ serving: ServingConfiguration, unhealthy: Set<HealthSnapshot.Server> = []
    ) {
        var before = checks
        checks.removeAll()
        var added: [ServerCheck] = []
        for (upstream, addresses) in zip(serving.configuration.upstreams, serving.addresses) {
            guard let settings = upstream.health else { continue }
            let tls = serving.tls.client(of: upstream.name)
            for address in addresses {
                let label = address.description
                let same = before.firstIndex {
                    $0.subject == .init(upstream: upstream.name, label: label)
                        && $0.serves(upstream, tls)
                }
                if let same {
                    checks.append(before.remove(at: same))
                    continue
                }
                let check = ServerCheck(
                    upstream, settings, address, tls: tls, loop: loop, version: version,
                    unhealthy: unhealthy)
                checks.append(check)
                added.append(check)
            }
        }
        for check in before { check.stop() }
        for check in added { Task.immediate(executorPreference: loop) { await run(check) } }
        if (before + added).contains(where: { !$0.verdict.isHealthy }) { publishVerdicts() }
    }

    /// What is known, for metrics.
    public var status: UpstreamHealthStatus {
        UpstreamHealthStatus(
            servers: checks.map {
                .init(
                    $0.subject.upstream, $0.subject.label, isHealthy: $0.verdict.isHealthy,
                    reason: $0.lastReason)
            }, checks: counts)
    }

    /// The servers that are unhealthy, for the process that takes the place of this one.
    public var unhealthy: Set<HealthSnapshot.Server> {
        Set(checks.filter { !$0.verdict.isHealthy }.map(\.subject))
    }

    /// Asks nobody any more.
    public func stop() {
        for check in checks { check.stop() }
        checks.removeAll()
    }

    private func run(_ check: ServerCheck) async {
        var pause = min(check.settings.interval, Self.firstPause) * Double.random(in: 0...1)
        while true {
            _ = await check.waiter.wait(until: loop.now.advanced(by: pause))
            if check.isOver { break }
            let (result, reason) = await check.perform()
            if check.isOver { break }
            note(result, reason, check)
            pause = check.settings.interval * Double.random(in: Self.jitter)
        }
        check.waiter.invalidate()
    }

    private func note(_ result: HealthCheckResult, _ reason: String?, _ check: ServerCheck) {
        counts[check.subject.upstream, default: [:]][result, default: 0] += 1
        check.lastReason = reason
        if result == .exhausted { return }
        if !check.verdict.note(passed: result == .success) { return }
        publishVerdicts()
        let fields = [
            (name: "upstream", value: check.subject.upstream),
            (name: "server", value: check.subject.label),
        ]
        guard let reason else { return log.log(.info, "upstream server is healthy", fields) }
        log.log(
            .warning, "upstream server is unhealthy",
            fields + [(name: "result", value: result.rawValue), (name: "reason", value: reason)])
    }

    private func publishVerdicts() {
        change += 1
        publish(HealthSnapshot(change: change, unhealthy: unhealthy))
    }
}
