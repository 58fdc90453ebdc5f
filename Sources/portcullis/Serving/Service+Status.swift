internal import Configuration
internal import Operations
internal import Proxy
internal import Reactor

/// What `GET /status` tells.
extension Service {
    func status() async -> StatusReport {
        let loops = await server.upstreams()
        let configuration = serving.configuration
        let now = loop.now
        var report = StatusReport(
            process: StatusReport.ProcessPart(
                version: Help.version, startedAt: startedAt.wallSeconds,
                uptime: .microseconds(now.microseconds(since: startedAt.instant)),
                readiness: readiness, log: writer, memory: memory, loops: loops.count,
                silentLoops: loops.indices.filter { loops[$0] == nil }),
            configuration: reloads.report(file: source.name))
        if let history { report.traffic = history.report(at: now) }
        let sources = UpstreamSources(
            loops: loops, health: await health.status, drains: drains, now: now)
        report.upstreams = configuration.upstreams.map { upstream in
            StatusReport.UpstreamPart(upstream, sources) { server in
                names.addresses(of: server).map(\.description)
            }
        }
        report.keySets = handedOut.confirm(await keeper.status, at: now)
            .map { StatusReport.KeySetPart($0) }
        report.replay = claims.store.map { StatusReport.ReplayPart(ClaimStoreStatus($0)) }
        report.certificates = certificates.report(at: loop.wallMicroseconds / 1_000_000)
        report.listeners = StatusReport.ListenerPart.all(configuration.listeners, metrics)
        report.findProblems()
        return report
    }

    /// Has the minutes that are over remembered.
    func sampleRegularly() async {
        guard let history else { return }
        let waiter = Waiter(loop: loop)
        while !isDraining {
            _ = await waiter.wait(until: loop.now.advanced(by: TrafficHistory.interval))
            history.sample(at: loop.now)
        }
        waiter.invalidate()
    }
}
