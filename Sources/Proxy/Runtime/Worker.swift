public import Configuration
public import Reactor
internal import Replay

/// One event loop's share of the proxy: an actor whose executor is the loop, so that all that it
/// holds is touched by one thread and needs no lock.
public actor Worker {
    private static let sweepInterval = Duration.seconds(1)
    /// Connections accepted in a row before those that are there already have their turn.
    private static let acceptLimit = 16
    /// What the kernel may have queued when a listener stops; who comes later is turned away.
    private static let backlog = 4096

    private nonisolated let loop: EventLoop
    private let state: LoopState
    private var acceptors: [Acceptor] = []
    private var isStopped = false
    /// When somebody last asked whether the loop runs.
    private var answeredAt = MonotonicInstant.now

    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// - Parameters:
    ///   - makeRecorder: Makes this loop's own recorder.
    ///   - requestRefetch: Asks for a project's keys again, because a token names a key that is not
    ///     among them.
    ///   - ledger: Counts client connections of all loops.
    public init(
        loop: EventLoop, serving: ServingConfiguration, keys: KeySnapshot,
        makeRecorder: @Sendable () -> any RequestRecorder, log: any EventLog,
        requestRefetch: @escaping @Sendable (String) -> Void,
        ledger: ConnectionLedger = ConnectionLedger()
    ) {
        self.loop = loop
        state = LoopState(
            loop: loop, serving: serving, keys: keys, recorder: makeRecorder(), log: log,
            requestRefetch: requestRefetch, ledger: ledger)
    }

    /// Starts what the loop does besides serving: handing log lines on, closing what lies idle.
    public func start() {
        loop.afterJobs = { [state] in state.endRound() }
        loop.beforeSleep = { [recorder = state.recorder] in recorder.flush() }
        state.startServing = { connection in self.start(connection) }
        state.continueReading = { link in self.continueReading(link) }
        Task.immediate(executorPreference: loop) { await sweepRegularly() }
    }

    /// Asks `store` about tokens from now on.
    func open(_ store: any ClaimStore, health: StoreHealth) {
        state.open(store, health: health)
    }

    /// Returns when the store can be asked, or at `deadline`.
    func warmUpClaims(until deadline: MonotonicInstant) async {
        await state.claims?.warmUp(until: deadline)
    }

    /// Accepts connections of a listener from now on.
    public func accept(_ descriptor: ListeningDescriptor, _ listener: Listener) throws(Errno) {
        let acceptor = try Acceptor(
            descriptor, served(listener, by: state.serving), state)
        acceptors.append(acceptor)
        Task.immediate(executorPreference: loop) { await acceptConnections(acceptor) }
    }

    /// Accepts no connections of a listener any more.
    func stopAccepting(_ address: ListenAddress) {
        for acceptor in acceptors where acceptor.listener.listener.listen == address {
            stop(acceptor)
        }
        acceptors.removeAll { $0.isStopped }
    }

    /// Serves requests that begin from now on by `serving`; listeners that it does not have stop
    /// accepting.
    public func adopt(_ serving: ServingConfiguration, keys: KeySnapshot) {
        state.adopt(serving, keys: keys)
        for acceptor in acceptors {
            let address = acceptor.listener.listener.listen
            if let listener = serving.configuration.listeners.first(where: { $0.listen == address })
            {
                acceptor.listener = served(listener, by: serving)
            } else {
                stop(acceptor)
            }
        }
        acceptors.removeAll { $0.isStopped }
    }

    /// Accepts nothing for now; what waits to be accepted waits on.
    public func suspendAccepting() {
        for acceptor in acceptors { acceptor.stop() }
        acceptors.removeAll()
    }

    private func served(_ listener: Listener, by serving: ServingConfiguration) -> ServedListener {
        ServedListener(
            listener, tls: serving.tls.server(of: listener.listen),
            ledger: state.ledger.listener(listener.listen))
    }

    /// Refuses requests and connections for want of memory, or goes on.
    func shed(_ isShedding: Bool) {
        state.shed(isShedding)
    }

    /// Verifies with these keys from now on.
    public func adopt(_ keys: KeySnapshot) {
        state.keys.adopt(keys)
    }

    /// Chooses among these servers from now on.
    public func adopt(_ health: HealthSnapshot) {
        state.adopt(health)
    }

    /// Gives these servers no new requests from now on.
    func adopt(_ drains: DrainSnapshot) {
        state.adopt(drains)
    }

    /// How its upstreams are.
    var upstreams: [LoopUpstreamStatus] {
        state.pools.map { LoopUpstreamStatus($0, at: loop.now) }
    }

    /// Accepts nothing more, closes idle connections, and lets requests in flight finish.
    public func drain() {
        for acceptor in acceptors { stop(acceptor) }
        acceptors.removeAll()
        state.startDraining()
    }

    /// Says that the loop runs, by returning.
    func answer() {
        // Nothing that the optimiser sees through: it takes away the way to this loop with a call
        // that has no effect here.
        answeredAt = .now
    }

    /// Connections that are open.
    public var connectionCount: Int { state.connectionCount }

    /// Ends all that is still open. What is under way notices at its next step.
    public func abort() {
        state.abortAll()
    }

    /// Ends all that is still open, and the loop.
    public func stop() {
        isStopped = true
        state.abortAll()
        state.closeClaims()
        state.startServing = { _ in }
        state.continueReading = { _ in }
        state.requestTurns.stop()
        state.recorder.flush()
        loop.stop()
    }

    // MARK: Accepting

    private func acceptConnections(_ acceptor: Acceptor) async {
        while !acceptor.isStopped {
            do throws(Errno) {
                if try acceptSome(acceptor, limit: Self.acceptLimit) {
                    await Task.yield()
                    continue
                }
                acceptor.noteAccepting()
            } catch {
                await acceptor.recover(from: error)
                continue
            }
            if acceptor.isStopped { break }
            await acceptor.awaitArrival()
        }
        acceptor.invalidate()
    }

    /// - Returns: whether more may be waiting.
    private func acceptSome(_ acceptor: Acceptor, limit: Int) throws(Errno) -> Bool {
        for _ in 0..<limit {
            switch try acceptor.next() {
            case .connection(let connection): start(connection)
            case .refusal(let socket):
                Task.immediate(executorPreference: loop) { await refuse(socket) }
            case .closed: break
            case nil: return false
            }
        }
        return true
    }

    private func stop(_ acceptor: Acceptor) {
        if acceptor.isStopped { return }
        // Connections that the kernel has taken already would be reset with the descriptor.
        _ = try? acceptSome(acceptor, limit: Self.backlog)
        acceptor.stop()
    }

    private func refuse(_ socket: Socket) async {
        await state.turnedAway.refuse(socket, state)
    }

    private func start(_ connection: ClientConnection) {
        // Without the preference a continuation resumes on the global pool first, a thread hop a
        // wait.
        Task.immediate(executorPreference: loop) { await serve(connection) }
    }

    private func continueReading(_ link: HTTP2Link) {
        Task.immediate(executorPreference: loop) { await readSoon(link) }
    }

    private func readSoon(_ link: HTTP2Link) async {
        await Task.yield()
        link.goOn()
    }

    private func serve(_ connection: ClientConnection) async {
        await connection.run()
    }

    private func sweepRegularly() async {
        let waiter = Waiter(loop: loop)
        while !isStopped {
            _ = await waiter.wait(until: loop.now.advanced(by: Self.sweepInterval))
            state.sweep()
        }
        waiter.invalidate()
    }
}
