internal import Configuration
internal import Policy
internal import Reactor
internal import TLS

/// Where one loop accepts the connections of a listener, and what is decided about each before it
/// is served. Belongs to that loop.
final class Acceptor {
    /// How long accepting pauses when the process or the machine has no descriptor or memory left.
    private static let exhaustionPause = Duration.milliseconds(100)

    /// Whoever connected.
    enum Arrival {
        /// To be served.
        case connection(ClientConnection)
        /// To be told that there is no room.
        case refusal(Socket)
        /// Gone again.
        case closed
    }

    /// What connections that come from now on are served as.
    var listener: ServedListener
    /// Nothing is accepted any more.
    private(set) var isStopped = false
    private let socket: ListeningSocket
    private let waiter: Waiter
    private let state: LoopState
    /// What the log says about connections that cannot be accepted.
    private var outage = OutageNotice()

    init(
        _ descriptor: ListeningDescriptor, _ listener: ServedListener, _ state: LoopState
    ) throws(Errno) {
        waiter = Waiter(loop: state.loop)
        socket = try ListeningSocket(descriptor, loop: state.loop, waiter: waiter)
        self.listener = listener
        self.state = state
    }

    /// Accepts nothing any more. Connections that the kernel has taken already are reset, unless
    /// somebody else has the descriptor, too.
    func stop() {
        isStopped = true
        socket.close()
        waiter.wake()
    }

    /// Nobody waits here any more.
    func invalidate() {
        waiter.invalidate()
    }

    /// The next one that connected; nil when nobody waits.
    func next() throws(Errno) -> Arrival? {
        guard let (socket, peer) = try socket.accept() else { return nil }
        let place = listener.place(of: IPAddress(bytes: peer.ipBytes.span))
        if let limit = state.admit(listener, network: place.network) {
            return turnAway(socket, peer, limit)
        }
        guard let transport = transport(over: socket) else {
            state.leave(listener, place)
            return .closed
        }
        let connection = ClientConnection(
            transport, peer: peer, listener: listener, state: state, place: place)
        connection.open()
        return .connection(connection)
    }

    /// Returns when somebody may have connected.
    func awaitArrival() async {
        _ = await waiter.wait()
    }

    /// Says that connections are accepted again, if that is news.
    func noteAccepting() {
        if !outage.worked(at: state.loop.now) { return }
        state.log.log(.info, "connections are accepted again", [("listener", listener.name)])
    }

    /// Makes room after `error`, if it can, and else waits for a while.
    func recover(from error: Errno) async {
        state.recorder.connection(.limited(error.exhaustedLimit), listener: listener.name)
        // Who is idle makes room for who is not; the log is for when nobody can.
        if error == .tooManyOpenFiles && state.makeRoom(of: nil) { return await Task.yield() }
        note(error)
        await pause()
    }

    /// Lets some time pass, however many connections come meanwhile: each of them wakes the
    /// acceptor, and none of them could be accepted.
    private func pause() async {
        let end = state.loop.now.advanced(by: Self.exhaustionPause)
        while !isStopped, await waiter.wait(until: end) == .ready {}
    }

    private func note(_ error: Errno) {
        if !outage.failed(at: state.loop.now) { return }
        state.log.log(
            .error, "cannot accept connections; trying again",
            [
                ("listener", listener.name), ("error", error.description),
                ("hint", "raise the limit of open files (LimitNOFILE, ulimit -n)"),
            ])
    }

    private func turnAway(_ socket: Socket, _ peer: SocketAddress, _ limit: Limit) -> Arrival {
        state.recorder.connection(.limited(limit), listener: listener.name)
        state.notices.note(
            limit, "a connection was turned away", listener: listener.name, client: peer.host,
            now: state.loop.now, log: state.log)
        if state.turnedAway.hasRoom(for: listener) { return .refusal(socket) }
        socket.close()
        return .closed
    }

    /// Nil, and the connection is closed, when there is no memory for TLS.
    private func transport(over socket: Socket) -> (any Transport)? {
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
}
