internal import Configuration
internal import Glibc
internal import HTTP
internal import Operations
internal import Proxy
internal import Reactor

/// SIGUSR2: a new binary takes over the listening sockets, proves that it serves, and only then
/// this process drains (docs/decisions/0092-upgrades.md).
extension Service {
    /// From the moment that nobody accepts to the proof that the new process does. Meanwhile
    /// connections wait in the kernel's queues.
    private static let handoverTime = Duration.seconds(3)
    private static let keyStep = Duration.milliseconds(20)
    /// What is left for the way from `prepared` to the end of the upgrade's time.
    private static let keyMargin = Duration.milliseconds(500)

    // MARK: The old process

    /// Begins an upgrade, unless one is under way.
    func startUpgrade(_ waiter: Waiter) {
        if isUpgrading {
            return log.log(
                .warning, "an upgrade is under way; the signal changes nothing", [])
        }
        isUpgrading = true
        Task.immediate(executorPreference: loop) {
            await upgrade()
            waiter.wake()
        }
    }

    /// Gives up the upgrade that is under way, if there is one.
    func abandonUpgrade() async {
        successor?.cancel()
        let waiter = Waiter(loop: loop)
        while isUpgrading && heir == nil {
            _ = await waiter.wait(until: loop.now.advanced(by: .milliseconds(5)))
        }
        waiter.invalidate()
        // Too late to stop it; whoever wants the service to end wants that of the new process, too.
        if let heir { Syscalls.kill(heir.process, SIGTERM) }
    }

    private func upgrade() async {
        do throws(UpgradeError) {
            let program = try upgradeProgram()
            let deadline = loop.now.advanced(by: serving.configuration.server.upgradeTimeout)
            let handover = await handover(until: deadline)
            let successor = try Successor(program, handover, loop: loop)
            self.successor = successor
            log.log(
                .info, "upgrade: a new process starts",
                [("program", program.path), ("pid", String(successor.process))])
            tell(.status(servingStatus("an upgrade is under way")))
            do throws(UpgradeError) {
                _ = try await successor.expect("prepared", until: deadline)
                let numbers = try await exchange(with: successor)
                handOver(to: successor, numbers)
            } catch {
                await successor.end()
                throw error
            }
        } catch {
            upgrades.failed()
            log.log(
                .error, "upgrade failed; this process serves on", [("error", error.description)])
            tell(.status(servingStatus(remark(on: error))))
        }
        successor = nil
        // What comes until `leave` is for the new process.
        if heir != nil { return }
        isUpgrading = false
        signalsToCome += signalsAfterUpgrade
        signalsAfterUpgrade.removeAll()
    }

    /// For whoever waits for the end of an attempt: no two attempts have the same words, and those of
    /// one that could not begin, where nothing but a restart helps, are not those of one that failed.
    private func remark(on error: UpgradeError) -> String {
        let counts = upgrades.counts
        let attempt = "upgrade attempt \(counts.succeeded &+ counts.failed)"
        return "\(attempt) \(error.isRefusal ? "refused" : "failed"): \(error.description)"
    }

    private func upgradeProgram() throws(UpgradeError) -> Program {
        guard let program else {
            throw UpgradeError(
                refusal: "this process does not run from a configuration file")
        }
        if Syscalls.processIdentifier() == 1 {
            throw UpgradeError(
                refusal: "the container ends with its first process, which this one is; replace "
                    + "the container instead")
        }
        if claims.isConfined {
            throw UpgradeError(
                refusal: "[replay] store = \"memory\" cannot be handed over: the new process would "
                    + "not know which tokens were used; choose \"file\" or \"redis\", or restart")
        }
        return program
    }

    private func handover(until deadline: MonotonicInstant) async -> Handover {
        var handover = Handover(
            process: Syscalls.processIdentifier(), channel: -1, deadline: deadline)
        handover.sockets = await server.passedSockets
        let numbers = Set(handover.sockets.map(\.number))
        if let admin, !numbers.contains(admin.socket.number), let address = adminAddress {
            handover.sockets.append(
                PassedSocket(number: admin.socket.number, origin: .opened(address)))
        }
        handover.claimStore = claims.place
        handover.usableProjects = readiness.usableProjects()
        handover.unhealthy = await health.unhealthy
        for (server, addresses) in names.known {
            handover.names[server] = addresses.compactMap { ListenAddress($0.description) }
        }
        handover.drains = drains.all.map {
            .init(
                upstream: $0.upstream, server: $0.address ?? $0.server.description, by: $0.by,
                since: $0.since)
        }
        handover.upgrades = upgrades.counts
        return handover
    }

    /// Steps aside for the new process, and back when it does not serve.
    ///
    /// - Returns: the descriptors that it accepts from.
    private func exchange(with successor: Successor) async throws(UpgradeError) -> Set<Int32> {
        await server.suspendAccepting()
        await admin?.server.suspendAccepting()
        do throws(UpgradeError) {
            let deadline = loop.now.advanced(by: Self.handoverTime)
            successor.go()
            let words = try await successor.expect("serving", until: deadline)
            let numbers = Set(words.compactMap { Int32($0) })
            try await probe(numbers, until: deadline)
            return numbers
        } catch {
            await server.resumeAccepting()
            if let admin { try? await admin.server.resumeAccepting(from: admin.socket) }
            throw error
        }
    }

    /// Asks the admin listener, from which nobody but the new process accepts now.
    private func probe(_ numbers: Set<Int32>, until deadline: MonotonicInstant)
        async throws(UpgradeError)
    {
        guard let admin, numbers.contains(admin.socket.number) else { return }
        let probe = HTTPProbe(admin.socket.address, tls: nil, loop: loop, version: Help.version)
        guard let url = try? HTTPURL("http://localhost/healthz") else { return }
        let status: UInt16
        do throws(HTTPClientError) {
            status = try await probe.status(of: url, until: deadline)
        } catch {
            throw UpgradeError("the new process does not answer /healthz: \(error.reason)")
        }
        if status != 200 { throw UpgradeError("the new process answers \(status) to /healthz") }
    }

    private func handOver(to successor: Successor, _ numbers: Set<Int32>) {
        if let admin, numbers.contains(admin.socket.number) { admin.socket.disown() }
        // In this order: the manager listens to the main process only.
        tell(.succeeded(by: successor.process))
        successor.letGo()
        heir = (successor.process, numbers)
    }

    /// Ends like SIGTERM does, but for what the new process has now.
    func leave(to process: Int32, _ waiter: Waiter) async -> ExitCode {
        writer.share(true)
        for signal in signalsAfterUpgrade { Syscalls.kill(process, signal) }
        readiness.enter(.draining)
        let connections = await server.connectionCount()
        log.log(
            .info, "upgrade: the new process serves; draining",
            [("pid", String(process)), ("connections", String(connections))])
        Task.immediate(executorPreference: loop) { await endAtNextSignal(waiter) }
        await server.handOver(heir?.sockets ?? [])
        await finish(within: serving.configuration.server.drainTimeout)
        return .done
    }

    // MARK: The new process

    /// What names mean is known until they are looked up, should the resolver fail just now.
    func takeNames(of handover: Handover) {
        names.add(serving.configuration)
        for (server, addresses) in handover.names {
            names.remember(addresses.compactMap { SocketAddress($0) }, of: server)
        }
    }

    /// What operators took out of service stays so.
    func takeDrains(of handover: Handover) async {
        for drain in handover.drains {
            let upstreams = serving.configuration.upstreams
            guard let upstream = upstreams.first(where: { $0.name == drain.upstream }),
                let subject = ServerDrains.subject(
                    drain.server, of: upstream, addresses: { names.addresses(of: $0) })
            else { continue }
            _ = drains.drain(subject, of: upstream.name, by: drain.by, since: drain.since)
        }
        if !drains.all.isEmpty { _ = await server.adopt(drains.snapshot) }
    }

    /// Returns when this process is the one that accepts.
    ///
    /// - Throws: why that will not be.
    func awaitTurn(after predecessor: Predecessor, _ waiter: Waiter) async throws(UpgradeError) {
        try await awaitKeys(predecessor.handover, waiter)
        await server.awaitLoops()
        predecessor.tellPrepared()
        while true {
            switch predecessor.next() {
            case .line("go"): return
            case .line: throw UpgradeError("the old process talks nonsense")
            case .end: throw UpgradeError("the old process gave up, or is gone")
            case .nothing: _ = await waiter.wait()
            }
            try checkEnd()
        }
    }

    /// Tokens that the old process can verify, this one has to be able to verify, too.
    private func awaitKeys(_ handover: Handover, _ waiter: Waiter) async throws(UpgradeError) {
        let margin = Self.keyMargin.nanoseconds
        let deadline = MonotonicInstant(nanoseconds: handover.deadline.nanoseconds &- margin)
        while true {
            let reasons = readiness.keySetReasons(among: handover.usableProjects)
            if reasons.isEmpty { return }
            if loop.now >= deadline { throw UpgradeError(reasons.joined(separator: "; ")) }
            _ = await waiter.wait(until: loop.now.advanced(by: Self.keyStep))
            try checkEnd()
        }
    }

    private func checkEnd() throws(UpgradeError) {
        while let signal = signals.next() { signalsToCome.append(signal) }
        if isEndDue { throw UpgradeError("the process is ending") }
    }

    /// Says that this process accepts, and waits for the old one to let go, or to be gone.
    func takePlace(of predecessor: Predecessor, _ waiter: Waiter) async {
        var numbers = await server.passedSockets.map(\.number)
        if let admin { numbers.append(admin.socket.number) }
        predecessor.tellServing(numbers)
        while predecessor.next() == .nothing {
            // The old process may want this one to end after all.
            while let signal = signals.next() { signalsToCome.append(signal) }
            if isEndDue { return predecessor.close() }
            _ = await waiter.wait()
        }
        predecessor.close()
        await server.settle()
        if let admin, case .unix(let path)? = adminAddress, !inherited.isManaged(admin.socket) {
            admin.socket.own(path)
        }
        upgrades.succeeded()
        log.log(
            .info, "upgrade: this process has taken over",
            [("predecessor", String(predecessor.handover.process))])
    }

    /// Both processes write to one log until the old one has ended.
    func shareLog(with process: Int32) async {
        writer.share(true)
        let waiter = Waiter(loop: loop)
        while !isDraining && Syscalls.parentProcessIdentifier() == process {
            _ = await waiter.wait(until: loop.now.advanced(by: .seconds(1)))
        }
        waiter.invalidate()
        if !isDraining { writer.share(false) }
    }

    private var adminAddress: ListenAddress? { serving.configuration.admin?.listen }
}
