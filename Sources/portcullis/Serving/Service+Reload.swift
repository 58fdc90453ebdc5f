internal import Configuration
internal import Operations
internal import Policy
internal import Proxy
internal import Reactor

/// Another configuration, while the proxy serves.
extension Service {
    /// Reads the configuration again and puts it in place, if it is right.
    func reload(_ waiter: Waiter) async {
        isReloading = true
        tell(.reloading(at: .now))
        let succeeded = await replaceConfiguration(waiter)
        isReloading = false
        names.waiter.wake()
        tell(.ready(status: servingStatus(succeeded ? nil : "the last reload failed, see the log")))
        Memory.releaseStartUp()
    }

    /// - Returns: whether a new configuration is in place; the old one is when not.
    private func replaceConfiguration(_ waiter: Waiter) async -> Bool {
        let (loaded, mistakes) = source.load()
        guard let configuration = loaded else {
            for mistake in mistakes {
                log.log(.error, "configuration not reloaded", [("error", mistake)])
            }
            reloads.ended(succeeded: false, mistakes: mistakes)
            return false
        }
        warnOfFixedSettings(configuration)
        for socket in inherited.unused(by: configuration) {
            log.log(
                .warning, "a passed socket has no listener any more; who connects to it waits",
                [("socket", socket)])
        }
        let next: ServingConfiguration
        do {
            let tls = try loadCertificates(configuration)
            await resolve(configuration, waiter)
            if isEndDue { throw EndingError() }
            next = ServingConfiguration(
                configuration, addresses: names.addresses(of: configuration), tls: tls,
                previous: serving)
            // The loops get to know a store that no configuration asked for before; it stays.
            if let store = try claims.open(for: configuration) { await server.open(store) }
            try await server.prepare(next)
        } catch {
            log.log(.error, "configuration not reloaded", [("error", "\(error)")])
            reloads.ended(succeeded: false, mistakes: ["\(error)"])
            return false
        }
        log.adopt(configuration.log)
        CrashLine.adopt(isJSON: configuration.log.format == .json)
        let keys = await keeper.update(projects: configuration.projects)
        await keepDraining()
        await tracing.adopt(configuration.tracing)
        await server.adopt(next, keys: keys)
        claims.adopt(configuration.replay)
        serving = next
        names.keepOnly(configuration)
        await forgetDrains()
        await keepDraining()
        adoptAdminToken(configuration.admin)
        await health.adopt(next)
        certificates.note(next.tls)
        // What came before a loop had changed over was not for its configuration.
        await handOutKeys()
        reloads.ended(succeeded: true)
        log.log(
            .info, "configuration reloaded",
            [("routes", String(configuration.routes.routes.count))])
        return true
    }

    /// Some settings are read once, at the start.
    private func warnOfFixedSettings(_ next: Configuration) {
        let current = serving.configuration
        let changes = [
            ("[server] workers", current.server.workers != next.server.workers),
            (
                "[server] state_directory",
                current.server.stateDirectory != next.server.stateDirectory
            ),
            ("[server] token_cache", current.server.tokenCacheBytes != next.server.tokenCacheBytes),
            ("[admin] listen", current.admin?.listen != next.admin?.listen),
            ("[replay] store", claims.differs(from: next.replay)),
        ]
        for (setting, isChanged) in changes where isChanged {
            log.log(
                .warning, "a changed setting takes effect at the next start", [("setting", setting)]
            )
        }
    }
}
