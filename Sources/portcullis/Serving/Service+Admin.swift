internal import Configuration
internal import Operations
internal import Proxy
internal import Reactor

/// The admin listener, and what can be changed through it.
extension Service: AdminControl {
    /// Opens the admin listener, if there is to be one. Nothing is accepted before `runAdmin`.
    func openAdmin(_ settings: Admin?, _ metrics: [LoopMetrics]) throws(ListenError) {
        guard let settings else { return }
        self.metrics = metrics
        history = TrafficHistory(metrics, now: loop.now)
        let passed =
            inherited.descriptors(for: settings.listen).first
            ?? inherited.takeOpened(for: settings.listen).first
        let descriptor: ListeningDescriptor
        if let passed { descriptor = passed } else { descriptor = try .open(settings.listen) }
        adoptAdminToken(settings)
        let (keeper, health) = (keeper, health)
        let page = MetricsPage(
            version: Help.version, loops: metrics, log: writer, reloads: reloads,
            upgrades: upgrades,
            keySets: { keeper.assumeIsolated { $0.status } },
            claimStore: { [claims] in claims.store.map { ClaimStoreStatus($0) } },
            certificates: certificates,
            upstreamHealth: { health.assumeIsolated { $0.status } },
            admin: access, drainStates: { self.assumeIsolated { $0.drainStates } },
            memory: memory,
            rateLimits: { self.assumeIsolated { $0.serving.limits.status } },
            spans: tracing.queue)
        let pages = AdminPages(
            metrics: page, readiness: readiness, access: access, control: self, events: log)
        let admin = AdminServer(loop: loop, pages: pages, events: log)
        self.admin = (admin, descriptor)
    }

    /// Accepts connections of the admin listener from now on.
    func runAdmin() {
        guard let (admin, descriptor) = admin else { return }
        let log = log
        Task(executorPreference: loop) {
            do throws(Errno) {
                try await admin.run(descriptor)
            } catch {
                log.log(.error, "the admin listener ended", [("error", "\(error)")])
            }
        }
        log.log(.info, "admin listening", [("address", "\(descriptor.address)")])
    }

    /// The token of this configuration counts from now on.
    func adoptAdminToken(_ settings: Admin?) {
        access.adopt(settings)
        guard let settings, let file = settings.tokenFile, settings.token == nil else { return }
        log.log(
            .warning, "the admin token cannot be read; the admin listener only reads",
            [("token_file", file)])
    }

    // MARK: Draining servers

    func setDraining(_ isDraining: Bool, server text: String, upstream name: String, client: String)
        async -> ServerChangeResult
    {
        let upstreams = serving.configuration.upstreams
        guard let upstream = upstreams.first(where: { $0.name == name }) else {
            return .unknownUpstream(known: upstreams.map(\.name))
        }
        let subject = ServerDrains.subject(text, of: upstream) { names.addresses(of: $0) }
        guard let subject else {
            return .unknownServer(known: upstream.servers.map(\.description))
        }
        let isChanged =
            isDraining
            ? drains.drain(
                subject, of: name, by: client, since: Syscalls.wallMicroseconds() / 1_000_000)
            : drains.undrain(subject, of: name)
        var fields = [("upstream", name), ("server", text), ("client", client)]
        if isChanged {
            log.log(
                .info,
                isDraining ? "upstream server drains" : "upstream server gets requests again",
                fields)
        }
        _ = await server.adopt(drains.snapshot)
        let loops = await server.upstreams()
        let all = loops.compactMap(\.self).flatMap(\.self).filter { $0.name == name }
        let labels = serving.addresses(of: upstream).map(\.description)
        let left = labels.count { !drains.isDraining($0, of: name) }
        let warning = warning(isDraining, left, subject, name)
        if let warning, isChanged {
            fields.append(("warning", warning))
            log.log(.warning, "a drain leaves an upstream without servers", fields)
        }
        return .done(
            ServerChange(
                upstream: name, server: text, addresses: subject.labels,
                state: isDraining ? .draining : .ready, isChanged: isChanged,
                inFlight: all.flatMap(\.servers).filter { subject.labels.contains($0.label) }
                    .reduce(0) { $0 + $1.activeCount },
                serversLeft: left, silentLoops: loops.count { $0 == nil }, warning: warning))
    }

    /// Every address of an upstream, and whether it is drained, for metrics.
    var drainStates: [ServerDrainState] {
        serving.configuration.upstreams.flatMap { upstream in
            serving.addresses(of: upstream).map(\.description).map {
                ServerDrainState(
                    upstream: upstream.name, server: $0,
                    isDraining: drains.isDraining($0, of: upstream.name))
            }
        }
    }

    /// What is drained stays so when loops change over to other addresses or another configuration.
    /// Call it before they do, and again behind it.
    func keepDraining() async {
        if drains.all.isEmpty { return }
        drains.update { names.addresses(of: $0) }
        _ = await server.adopt(drains.snapshot)
    }

    /// Forgets drained servers that the new configuration, which every loop has, does not have.
    func forgetDrains() async {
        let forgotten = drains.keepOnly(serving.configuration)
        if forgotten.isEmpty { return }
        _ = await server.adopt(drains.snapshot)
        for drain in forgotten {
            log.log(
                .info, "a drained upstream server left the configuration",
                [("upstream", drain.upstream), ("server", drain.server.description)])
        }
    }

    private func warning(
        _ isDraining: Bool, _ left: Int, _ subject: ServerDrains.Subject, _ upstream: String
    ) -> String? {
        if left == 0 {
            return "no server of upstream \(upstream) gets requests any more: they are answered "
                + "with 503 upstream_unavailable"
        }
        let isStillDrained = subject.labels.contains { drains.isDraining($0, of: upstream) }
        return !isDraining && isStillDrained
            ? "another name of the same address is drained, too" : nil
    }
}
