internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// What becomes of a client connection after a request.
enum Fate {
    case keepAlive
    case close
    /// The client may still be sending: give it time to read our answer before the connection goes
    /// (RFC 9112, 9.6).
    case linger
    /// The answer was cut off: the client must not take it for complete.
    case reset
}

/// One HTTP/1.1 connection of a client: a task that serves one request after the other.
///
/// Between requests it holds no buffers, only its socket and its place to sleep.
final class ClientConnection {
    private static let lingerTime = Duration.seconds(2)
    private static let lingerBytes = 1 << 20
    /// Pipelined requests that are served in a row before others have their turn.
    private static let turnLimit = 16

    let state: LoopState
    let socket: Socket
    let waiter: Waiter
    let peer: SocketAddress
    /// The peer's IP address; nil on a local socket.
    let peerAddress: IPAddress?
    let listener: ServedListener
    /// The peer's address as text, without port.
    let peerHost: String
    let isPeerTrusted: Bool
    private var isActive = false
    private var isAborted = false
    private var requestsInTurn = 0

    init(_ socket: Socket, peer: SocketAddress, listener: ServedListener, state: LoopState) {
        self.socket = socket
        self.peer = peer
        self.listener = listener
        self.state = state
        waiter = Waiter(loop: state.loop)
        peerHost = peer.host
        let address = IPAddress(bytes: peer.ipBytes.span)
        peerAddress = address
        isPeerTrusted = address.map(listener.isTrusted) ?? false
        socket.waiter = waiter
    }

    /// Serves the connection until it ends.
    func run() async {
        state.recorder.connection(.opened, listener: listener.name)
        state.began(self)
        var fate = Fate.keepAlive
        while let exchange = await nextExchange() {
            setActive(true)
            fate = await serve(exchange)
            if fate != .keepAlive { break }
            await endTurn()
        }
        if fate == .linger { await linger() }
        if fate == .reset { socket.resetOnClose() }
        state.ended(self)
        waiter.invalidate()
        socket.close()
        state.recorder.connection(.closed(wasActive: isActive), listener: listener.name)
    }

    /// Something outside changed (draining): look again.
    func wake() {
        waiter.wake()
    }

    /// Ends the connection at once; its task notices by failing reads and writes.
    func abort() {
        isAborted = true
        socket.breakOff()
        waiter.wake()
    }

    // MARK: One request after the other

    /// Bytes of the next request that came behind the last one.
    private var leftover: Exchange?

    private func serve(_ exchange: Exchange) async -> Fate {
        let fate = await exchange.serve(self)
        if fate == .keepAlive && !exchange.input.isEmpty {
            leftover = exchange
        } else {
            state.giveBack(exchange)
        }
        return fate
    }

    /// Waits for the first bytes of a request; nil when the connection ends instead.
    private func nextExchange() async -> Exchange? {
        if let exchange = leftover {
            leftover = nil
            if !state.isDraining { return exchange }
            // Pipelined requests that were not begun are the client's to repeat (RFC 9112, 9.3.2).
            state.giveBack(exchange)
            return nil
        }
        let deadline = state.loop.now.advanced(byNanoseconds: listener.idleNanoseconds)
        while !isAborted {
            if socket.isReadable {
                let exchange = state.takeExchange()
                switch try? socket.read(into: exchange.input) {
                case .bytes: return exchange
                case .wouldBlock: state.giveBack(exchange)
                case .endOfStream, nil:
                    state.giveBack(exchange)
                    return nil
                }
            }
            if state.isDraining { return nil }
            setActive(false)
            requestsInTurn = 0
            if await waiter.wait(until: deadline) == .timedOut { return nil }
        }
        return nil
    }

    /// Lets others go on: a client that pipelines without end gives this task no reason to sleep.
    private func endTurn() async {
        requestsInTurn += 1
        if requestsInTurn < Self.turnLimit { return }
        requestsInTurn = 0
        await Task.yield()
    }

    private func setActive(_ isActive: Bool) {
        if self.isActive == isActive { return }
        self.isActive = isActive
        state.recorder.connection(isActive ? .becameActive : .becameIdle, listener: listener.name)
    }

    /// Closes our side and reads on for a while: bytes that arrive at a closed socket would reset
    /// the connection and could destroy the answer on its way.
    private func linger() async {
        socket.finishWriting()
        let deadline = state.loop.now.advanced(by: Self.lingerTime)
        let scratch = ByteBuffer(capacity: 4096)
        var read = 0
        while read < Self.lingerBytes && !isAborted {
            switch try? socket.read(into: scratch) {
            case .bytes(let count):
                read += count
                scratch.removeAll()
            case .wouldBlock:
                if await waiter.wait(until: deadline) == .timedOut { return }
            case .endOfStream, nil: return
            }
        }
    }
}
