internal import Configuration
internal import Glibc
internal import Operations
internal import Policy
internal import Proxy
internal import Reactor
internal import TLS

/// The running proxy: the parts, and what signals do to them. An actor on the control loop, which
/// serves no requests.
///
/// SIGHUP reloads, SIGUSR2 hands over to a new binary, SIGTERM and SIGINT drain; a second one of
/// these ends the process at once. SIGUSR1, by which others open their log again, must not kill.
actor Service {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let source: ConfigurationSource
    let inherited: InheritedSockets
    /// What takes over at SIGUSR2; nil when nothing can.
    let program: Program?
    /// What this process was told that takes another one's place.
    private let handover: Handover?
    let signals: SignalSource
    let writer: LogWriter
    let log: EventLogger
    let reloads = ReloadStatus()
    let upgrades: UpgradeStatus
    let server: ProxyServer
    let keeper: KeySetKeeper
    let handedOut: HandedOutKeys
    let names: NameBook
    let health: HealthChecker
    let readiness: Readiness
    let claims: ClaimAuthority
    /// To the service manager.
    let notice = ServiceManagerNotice.current
    /// One set of keys for as long as the process lives: a reload ends no session.
    let tickets = TicketKeys()
    /// For the metrics.
    let certificates = CertificateStatus()
    var admin: (server: AdminServer, socket: ListeningDescriptor)?
    /// The counters of each loop.
    var metrics: [LoopMetrics] = []
    /// What they counted in the last minutes; nil where nobody can ask.
    var history: TrafficHistory?
    /// When the process began.
    let startedAt = (
        wallSeconds: Syscalls.wallMicroseconds() / 1_000_000, instant: MonotonicInstant.now
    )
    /// Who may change something through it.
    let access = AdminAccess()
    /// What operators took out of service.
    var drains = ServerDrains()
    /// For readiness and the metrics.
    let memory = MemoryReport()
    /// The new process, while this one may still go on.
    var successor: Successor?
    /// The process that has taken this one's place, and what it accepts from.
    var heir: (process: Int32, sockets: Set<Int32>)?
    /// What the loops have, or are about to get.
    var serving: ServingConfiguration
    /// Sends the spans of traced requests.
    let tracing: SpanExporter
    /// The process is ending.
    var isDraining = false
    /// Another configuration is about to be put in place.
    var isReloading = false
    /// A new binary is about to take over, or has.
    var isUpgrading = false
    /// Signals that came while something else was under way.
    var signalsToCome: [Int32] = []
    /// Signals for whoever serves when the upgrade is over.
    var signalsAfterUpgrade: [Int32] = []
    /// The loops serve.
    private(set) var isServing = false
    /// Names have addresses that the loops do not know yet.
    var areAddressesNew = false

    /// - Parameters:
    ///   - source: Where the configuration comes from, now and at each reload.
    ///   - configuration: The one that was read already.
    ///   - inherited: Sockets that are open already.
    ///   - handover: Whose they were, when this process takes another one's place.
    ///   - program: What takes over at SIGUSR2; nil when nothing can.
    ///   - keepsState: Key sets are kept in the state directory for the next start.
    init(
        loop: EventLoop, source: ConfigurationSource, configuration: Configuration,
        inherited: InheritedSockets, handover: Handover?, program: Program?,
        signals: SignalSource, writer: LogWriter, keepsState: Bool
    ) {
        let log = EventLogger(configuration.log, writer: writer)
        let server = ProxyServer(loop: loop, log: log, inherited: inherited)
        self.loop = loop
        self.source = source
        self.inherited = inherited
        self.handover = handover
        self.program = program
        upgrades = UpgradeStatus(handover?.upgrades ?? .init())
        self.signals = signals
        self.writer = writer
        self.log = log
        self.server = server
        claims = ClaimAuthority(
            keepsState: keepsState, earlierPlace: handover?.claimStore, log: log)
        serving = ServingConfiguration(
            configuration, addresses: configuration.upstreams.map { _ in [] })
        tracing = SpanExporter(loop: loop, version: Help.version, log: log)
        names = NameBook(loop: loop, log: log)
        health = HealthChecker(
            loop: loop, version: Help.version, log: log,
            publish: { snapshot in
                Task(executorPreference: loop) { await server.adopt(snapshot) }
            })
        let handedOut = HandedOutKeys()
        self.handedOut = handedOut
        let keeper = KeySetKeeper(
            loop: loop, projects: configuration.projects,
            stateDirectory: keepsState
                ? StateDirectory.usable(configuration.server.stateDirectory, log) : nil,
            version: Help.version, log: log,
            publish: { keys in
                // On this loop from the start: two snapshots must not overtake each other.
                Task(executorPreference: loop) {
                    await server.adopt(keys)
                    handedOut.note(keys)
                }
            })
        self.keeper = keeper
        // Probes are answered on this loop too, so the keeper's state is at hand without a wait.
        readiness = Readiness(memory: memory) {
            handedOut.confirm(keeper.assumeIsolated { $0.status }, at: loop.now)
        }
    }

    /// Serves until a signal ends it.
    ///
    /// - Parameter whenServing: Called once requests are accepted.
    func run(whenServing: @Sendable () -> Void) async -> ExitCode {
        let waiter = Waiter(loop: loop)
        let predecessor: Predecessor?
        do throws(Errno) {
            try signals.attach(to: loop, waiter: waiter)
            predecessor = try handover.map { handover throws(Errno) in
                try Predecessor(handover, waiter: waiter)
            }
        } catch {
            log.log(.error, "cannot watch signals and channels", [("error", "\(error)")])
            return .failure
        }
        Task.immediate(executorPreference: loop) { await resolveRegularly(waiter) }
        if let handover {
            Task.immediate(executorPreference: loop) { await shareLog(with: handover.process) }
        }
        do {
            try await start(waiter, predecessor)
            whenServing()
            tell(.ready(status: servingStatus()))
            Memory.releaseStartUp()
        } catch {
            predecessor?.tellFailure("\(error)")
            tell(.status("cannot start: \(error)"))
            log.log(.error, "cannot start", [("error", "\(error)")])
            return .wrong
        }
        Task.immediate(executorPreference: loop) { await purgeRegularly() }
        Task.immediate(executorPreference: loop) { await sampleRegularly() }
        Task.immediate(executorPreference: loop) { await watchCertificates() }
        Task.immediate(executorPreference: loop) { await watchMemory() }
        Task.immediate(executorPreference: loop) { await feedWatchdog() }
        while true {
            while let signal = nextSignal() {
                switch signal {
                case SIGHUP where isUpgrading: signalsAfterUpgrade.append(signal)
                case SIGHUP: await reload(waiter)
                case SIGUSR1:
                    log.log(.info, "SIGUSR1 changes nothing: there is no log file to reopen", [])
                case SIGUSR2: startUpgrade(waiter)
                default:
                    await abandonUpgrade()
                    return await drain(signal, waiter)
                }
            }
            if let heir { return await leave(to: heir.process, waiter) }
            _ = await waiter.wait()
        }
    }

    /// The next signal that nothing was done about yet.
    func nextSignal() -> Int32? {
        signalsToCome.isEmpty ? signals.next() : signalsToCome.removeFirst()
    }

    // MARK: Start

    private func start(_ waiter: Waiter, _ predecessor: Predecessor?) async throws {
        // The runtime's global pool makes its descriptors at first use, and traps when there are none
        // left then: so use it now.
        await Task.detached {}.value
        let configuration = serving.configuration
        let tls = try loadCertificates(configuration)
        certificates.note(tls)
        if let handover { takeNames(of: handover) }
        await resolve(configuration, waiter)
        serving = ServingConfiguration(
            configuration, addresses: names.addresses(of: configuration), tls: tls,
            previous: serving)
        let store = try claims.open(for: configuration)
        let metrics = (0..<serving.workerCount).map { _ in LoopMetrics() }
        try openAdmin(configuration.admin, metrics)
        let keys = await keeper.start()
        let keeper = keeper
        await tracing.adopt(configuration.tracing)
        try await server.start(
            serving, keys: keys, store: store,
            makeRecorder: { [writer, log, spans = tracing.queue] index in
                WorkerRecorder(
                    metrics: metrics[index], writer: writer, events: log, spans: spans)
            },
            requestRefetch: { keeper.refetch($0) })
        // What came while the loops were made found nobody to tell.
        await handOutKeys()
        await health.adopt(serving, unhealthy: handover?.unhealthy ?? [])
        if let predecessor {
            await takeDrains(of: predecessor.handover)
            try await awaitTurn(after: predecessor, waiter)
        }
        try await server.startAccepting()
        // Before anybody can ask: a balancer must not take a process out that only took over.
        readiness.enter(.serving)
        runAdmin()
        if let predecessor { await takePlace(of: predecessor, waiter) }
        isServing = true
        names.waiter.wake()
        log.log(
            .info, "serving",
            [
                ("version", Help.version), ("configuration", source.name),
                ("workers", String(serving.workerCount)),
                ("routes", String(configuration.routes.routes.count)),
            ])
    }

    /// Gives every loop the newest keys.
    func handOutKeys() async {
        let keys = await keeper.snapshot
        await server.adopt(keys)
        handedOut.note(keys)
    }

    /// Puts the same configuration in place with other addresses or certificates.
    func adopt(_ next: ServingConfiguration) async {
        serving = next
        certificates.note(next.tls)
        await health.adopt(next)
        await keepDraining()
        await server.adopt(next, keys: keeper.snapshot)
        await keepDraining()
    }

    private func purgeRegularly() async {
        await claims.purgeRegularly(on: loop) { !isDraining }
    }
}
