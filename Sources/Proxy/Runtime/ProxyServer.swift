internal import Configuration
public import Reactor
public import Replay

/// The whole data path: loops, listeners, and the configuration that they serve. An actor on the
/// control loop.
public actor ProxyServer {
    /// How often a drain looks whether all is over.
    private static let drainStep = Duration.milliseconds(20)
    /// How long requests that are cut off have to take back claims and to write their line.
    private static let abortTime = Duration.milliseconds(300)
    /// How long serving waits for the claim store; one that is down must not keep it from starting.
    private static let warmUpTime = Duration.seconds(2)
    /// How long it waits for the store to vouch for new tokens: a second by nature, and a wall clock
    /// that is stepped meanwhile must not make it an hour.
    private static let vouchingTime = Duration.milliseconds(1500)
    private static let vouchingStep = Duration.milliseconds(10)

    nonisolated let loop: EventLoop
    let log: any EventLog
    private(set) var workers: [Worker] = []
    var listening: Listening
    private let ledger = ConnectionLedger()
    private var prepared: [(Listener, [ListeningDescriptor])] = []
    /// Whose connections are accepted, or about to be.
    private(set) var listeners: [Listener] = []

    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// A server whose control loop is `loop`; nothing is opened before `start`.
    ///
    /// - Parameter inherited: Sockets that are open already.
    public init(loop: EventLoop, log: any EventLog, inherited: InheritedSockets = .none) {
        self.loop = loop
        self.log = log
        listening = Listening(inherited: inherited)
    }

    /// Opens the listeners, starts the loops, and returns when the claim store can be asked. Nothing
    /// is accepted before `startAccepting`.
    ///
    /// - Parameter store: Which tokens were spent; nil when no route wants to know.
    /// - Throws: `ListenError` when an address cannot be opened; nothing is left running then.
    public func start(
        _ serving: ServingConfiguration, keys: KeySnapshot, store: (any ClaimStore)?,
        makeRecorder: @escaping @Sendable (Int) -> any RequestRecorder,
        requestRefetch: @escaping @Sendable (String) -> Void
    ) async throws {
        adoptCeiling(serving.configuration.server)
        do {
            listeners = serving.configuration.listeners
            prepared = try listening.open(listeners, count: serving.workerCount)
            try await startWorkers(
                serving, keys: keys, makeRecorder: makeRecorder, requestRefetch: requestRefetch)
            if let store { await open(store) }
        } catch {
            await giveUp()
            throw error
        }
    }

    /// Accepts connections from now on.
    ///
    /// - Throws: when the kernel does not watch a listener; nothing is left running then.
    public func startAccepting() async throws(Errno) {
        let opened = prepared
        prepared = []
        listening.forgetOpened()
        do throws(Errno) {
            try await accept(opened)
        } catch {
            await giveUp()
            throw error
        }
    }

    /// Ends what `start` began. Connections that wait to be accepted wait on where another process
    /// has the listeners, too.
    public func giveUp() async {
        for worker in workers { await worker.stop() }
        workers.removeAll()
        prepared = []
        listening.close(except: [])
    }

    private func startWorkers(
        _ serving: ServingConfiguration, keys: KeySnapshot,
        makeRecorder: @escaping @Sendable (Int) -> any RequestRecorder,
        requestRefetch: @escaping @Sendable (String) -> Void
    ) async throws {
        for index in 0..<serving.workerCount {
            let workerLoop = try EventLoop()
            let worker = Worker(
                loop: workerLoop, serving: serving, keys: keys,
                makeRecorder: { makeRecorder(index) }, log: log,
                requestRefetch: requestRefetch, ledger: ledger)
            if !Thread.start(named: "worker \(index)", { workerLoop.run() }) {
                throw Errno.noMemory
            }
            await worker.start()
            workers.append(worker)
        }
    }

    /// Has every loop ask `store` about tokens, for as long as the loops run. Returns when it can
    /// be asked and vouches for tokens that are issued from now on, or when that has taken too long.
    public func open(_ store: any ClaimStore) async {
        let health = StoreHealth(store, log: log)
        let deadline = loop.now.advanced(by: Self.warmUpTime)
        await withTaskGroup { group in
            for worker in workers {
                group.addTask {
                    await worker.open(store, health: health)
                    await worker.warmUpClaims(until: deadline)
                }
            }
        }
        // Only now: a remote store learns from its server since when.
        await awaitVouching(of: store)
    }

    private func awaitVouching(of store: any ClaimStore) async {
        let waiter = Waiter(loop: loop)
        let deadline = loop.now.advanced(by: Self.vouchingTime)
        while loop.now < deadline,
            store.reliableSince > Syscalls.wallMicroseconds() / 1_000_000
        {
            _ = await waiter.wait(until: loop.now.advanced(by: Self.vouchingStep))
        }
        waiter.invalidate()
    }

    /// Opens the listeners that a new configuration adds, without accepting anything yet.
    ///
    /// - Throws: `ListenError` when one cannot be opened; then nothing has changed.
    public func prepare(_ serving: ServingConfiguration) throws(ListenError) {
        let added = serving.configuration.listeners.filter { !listening.isOpen($0.listen) }
        prepared = try listening.open(added, count: workers.count)
    }

    /// Serves requests that begin from now on by a configuration that was prepared.
    public func adopt(_ serving: ServingConfiguration, keys: KeySnapshot) async {
        let added = prepared
        prepared = []
        adoptCeiling(serving.configuration.server)
        listeners = serving.configuration.listeners
        for worker in workers { await worker.adopt(serving, keys: keys) }
        var kept = serving.configuration.listeners.map(\.listen)
        for (listener, descriptors) in added {
            do throws(Errno) {
                try await accept([(listener, descriptors)])
            } catch {
                // Closed again: who connects is turned away, instead of waiting for nobody.
                for worker in workers { await worker.stopAccepting(listener.listen) }
                kept.removeAll { $0 == listener.listen }
                log.log(
                    .error, "a new listener accepts nothing; reload to try again",
                    [("listener", listener.name), ("error", "\(error)")])
            }
        }
        listening.close(except: kept)
    }

    /// Gives every loop new keys.
    public func adopt(_ keys: KeySnapshot) async {
        for worker in workers { await worker.adopt(keys) }
    }

    /// Tells every loop which servers are healthy.
    public func adopt(_ health: HealthSnapshot) async {
        for worker in workers { await worker.adopt(health) }
    }

    private func adoptCeiling(_ server: Server) {
        let descriptors = Syscalls.descriptorLimit()
        let ceiling =
            server.maxConnections ?? ConnectionLedger.ceiling(descriptors: descriptors)
        ledger.adopt(ceiling: ceiling)
        let isTight = ceiling > ConnectionLedger.ceiling(descriptors: descriptors)
        log.log(
            isTight ? .warning : .info,
            isTight ? "max_connections is more than open files allow" : "client connections",
            [("max_connections", String(ceiling)), ("open_files", String(descriptors))])
    }

    /// Refuses requests and connections for want of memory, or goes on.
    public func shed(_ isShedding: Bool) async {
        for worker in workers { await worker.shed(isShedding) }
    }

    // MARK: The end

    /// Stops accepting, waits for requests in flight, and ends the loops.
    ///
    /// - Returns: how many connections had to be cut off when `timeout` was over.
    @discardableResult
    public func drain(timeout: Duration) async -> Int {
        for worker in workers { await worker.drain() }
        listening.close(except: [])
        let waiter = Waiter(loop: loop)
        let deadline = loop.now.advanced(by: timeout)
        var left = await connectionCount()
        while left > 0 && loop.now < deadline {
            _ = await waiter.wait(until: loop.now.advanced(by: Self.drainStep))
            left = await connectionCount()
        }
        if left > 0 { await abort(waiter) }
        waiter.invalidate()
        for worker in workers { await worker.stop() }
        workers.removeAll()
        return left
    }

    /// Cuts off what is under way, and waits for it to notice: a request of which nothing was sent
    /// has a claim to take back, and each has a line to write.
    private func abort(_ waiter: Waiter) async {
        for worker in workers { await worker.abort() }
        let deadline = loop.now.advanced(by: Self.abortTime)
        while await connectionCount() > 0 && loop.now < deadline {
            _ = await waiter.wait(until: loop.now.advanced(by: Self.drainStep))
        }
    }

    /// Client connections that are open now.
    public func connectionCount() async -> Int {
        var count = 0
        for worker in workers { count += await worker.connectionCount }
        return count
    }

    private func accept(_ opened: [(Listener, [ListeningDescriptor])]) async throws(Errno) {
        for (listener, descriptors) in opened {
            try await accept(listener, descriptors)
            let bound = descriptors.first?.address.description ?? ""
            log.log(.info, "listening", [("listener", listener.name), ("address", bound)])
        }
    }

    /// Spreads the connections of a listener over the loops from now on.
    func accept(_ listener: Listener, _ descriptors: [ListeningDescriptor])
        async throws(Errno)
    {
        let shares = Listening.spread(descriptors, over: workers.count)
        for (worker, share) in zip(workers, shares) {
            for descriptor in share { try await worker.accept(descriptor, listener) }
        }
    }
}
