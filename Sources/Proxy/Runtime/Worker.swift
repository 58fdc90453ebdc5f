public import Configuration
internal import Policy
public import Reactor
internal import Replay
internal import TLS

/// One event loop's share of the proxy: an actor whose executor is the loop, so that all that it
/// holds is touched by one thread and needs no lock.
public actor Worker {
    private static let sweepInterval = Duration.seconds(1)
    /// How long accepting pauses when the process or the machine has no descriptor or memory left.
    private static let exhaustionPause = Duration.milliseconds(100)
    /// Connections accepted in a row before those that are there already have their turn.
    private static let acceptLimit = 16
    /// What the kernel may have queued when a listener stops; who comes later is turned away.
    private static let backlog = 4096

    private final class Acceptor {
        let socket: ListeningSocket
        let waiter: Waiter
        var listener: ServedListener
        var isStopped = false
        /// What the log says about connections that cannot be accepted.
        var outage = OutageNotice()

        init(
            _ descriptor: ListeningDescriptor, _ listener: ServedListener, loop: EventLoop
        ) throws(Errno) {
            waiter = Waiter(loop: loop)
            socket = try ListeningSocket(descriptor, loop: loop, waiter: waiter)
            self.listener = listener
        }

        func stop() {
            isStopped = true
            socket.close()
            waiter.wake()
        }
    }

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
        loop.afterJobs = { [state] in state.flushConnections() }
        loop.beforeSleep = { [recorder = state.recorder] in recorder.flush() }
        state.startServing = { connection in self.start(connection) }
        state.continueReading = { link in self.continueReading(link) }
        state.requestTurns.scheduleRound = { self.beginRequestsSoon() }
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
            descriptor, served(listener, by: state.serving), loop: loop)
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
        state.adopt(keys)
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
                noteAccepting(acceptor)
            } catch {
                let limit = error.exhaustedLimit
                state.recorder.connection(.limited(limit), listener: acceptor.listener.name)
                // Who is idle makes room for who is not; the log is for when nobody can.
                if error == .tooManyOpenFiles && state.makeRoom(of: nil) {
                    await Task.yield()
                    continue
                }
                note(error, acceptor)
                await pause(acceptor)
                continue
            }
            if acceptor.isStopped { break }
            _ = await acceptor.waiter.wait()
        }
        acceptor.waiter.invalidate()
    }

    /// Lets some time pass, however many connections come meanwhile: each of them wakes the
    /// acceptor, and none of them could be accepted.
    private func pause(_ acceptor: Acceptor) async {
        let end = loop.now.advanced(by: Self.exhaustionPause)
        while !acceptor.isStopped, await acceptor.waiter.wait(until: end) == .ready {}
    }

    private func note(_ error: Errno, _ acceptor: Acceptor) {
        let listener = acceptor.listener.name
        if !acceptor.outage.failed(at: loop.now) { return }
        state.log.log(
            .error, "cannot accept connections; trying again",
            [
                ("listener", listener), ("error", error.description),
                ("hint", "raise the limit of open files (LimitNOFILE, ulimit -n)"),
            ])
    }

    private func noteAccepting(_ acceptor: Acceptor) {
        if !acceptor.outage.worked(at: loop.now) { return }
        state.log.log(
            .info, "connections are accepted again", [("listener", acceptor.listener.name)])
    }

    /// - Returns: whether more may be waiting.
    private func acceptSome(_ acceptor: Acceptor, limit: Int) throws(Errno) -> Bool {
        for _ in 0..<limit {
            guard let (socket, peer) = try acceptor.socket.accept() else { return false }
            let listener = acceptor.listener
            let place = listener.place(of: IPAddress(bytes: peer.ipBytes.span))
            if let limit = state.admit(listener, network: place.network) {
                turnAway(socket, peer, listener, limit)
                continue
            }
            guard let transport = transport(over: socket, listener) else {
                state.leave(listener, place)
                continue
            }
            let connection = ClientConnection(
                transport, peer: peer, listener: listener, state: state, place: place)
            connection.open()
            start(connection)
        }
        return true
    }

    private func turnAway(
        _ socket: Socket, _ peer: SocketAddress, _ listener: ServedListener, _ limit: Limit
    ) {
        state.recorder.connection(.limited(limit), listener: listener.name)
        state.notices.note(
            limit, "a connection was turned away", listener: listener.name, client: peer.host,
            now: loop.now, log: state.log)
        guard state.turnedAway.hasRoom(for: listener) else { return socket.close() }
        Task.immediate(executorPreference: loop) { await refuse(socket) }
    }

    private func refuse(_ socket: Socket) async {
        await state.turnedAway.refuse(socket, state)
    }

    /// Nil, and the connection is closed, when there is no memory for TLS.
    private func transport(over socket: Socket, _ listener: ServedListener) -> (any Transport)? {
        guard let server = listener.tls else { return socket }
        do throws(TLSError) {
            return TLSTransport(
                try TLSStream(server: server, socket: socket, scratch: state.tlsScratch))
        } catch {
            state.log.log(
                .error, "a connection was closed for want of memory",
                [("listener", listener.name), ("error", error.detail)])
            socket.close()
            return nil
        }
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
        link.owner?.linkHasMore()
    }

    private func beginRequestsSoon() {
        Task.immediate(executorPreference: loop) { await beginRequests() }
    }

    private func beginRequests() async {
        await Task.yield()
        state.requestTurns.run()
    }

    private func serve(_ connection: ClientConnection) async {
        await connection.run()
    }

    private func stop(_ acceptor: Acceptor) {
        if acceptor.isStopped { return }
        // Connections that the kernel has taken already would be reset with the descriptor.
        _ = try? acceptSome(acceptor, limit: Self.backlog)
        acceptor.stop()
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
