internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor
internal import TLS

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

/// One HTTP/1.1 connection of a client, or one stream of an HTTP/2 connection: a task that serves
/// one request after the other.
///
/// Between requests it holds no buffers, only its transport and its place to sleep.
final class ClientConnection {
    /// How long a connection is left open, while the process drains, since it was used last: the
    /// next request may be on its way, and closing would lose it. Its answer closes the connection.
    private static let drainGraceNanoseconds: Int64 = 1_000_000_000

    /// What all requests of this loop share.
    let state: LoopState
    /// What carries the client's bytes: a socket, TLS over one, or one stream of HTTP/2.
    var transport: any Transport
    /// Where the connection's task sleeps; lent to the upstream sockets that it uses.
    let waiter: Waiter
    /// Who it is from.
    var peer: ClientPeer
    /// The settings that the connection was accepted under.
    var listener: ServedListener
    /// The connection begins with a PROXY header that was not read yet.
    private var awaitsProxyHeader: Bool
    /// What the TLS handshake found out; nil on plain connections.
    var session: TLSSession?
    /// Where it is among the connections of its loop; nil while it is none of them.
    var indexInLoop: Int?
    private var isActive = false
    /// The connection was given up from outside.
    var isAborted = false
    /// Its task waits for another stream, or is to end.
    var isResting = false
    /// Requests that were served without a pause for others.
    var requestsInTurn: UInt8 = 0
    /// It has carried a request.
    var hasServed = false
    /// The latest request came right behind the one before: the next one is worth a task that
    /// waits.
    var isBusy = false
    /// When the last request ended, or the connection began.
    var idleSince = MonotonicInstant.never
    /// Its task has ended, and the next byte starts another one.
    private var isAsleep = false
    /// Its place is needed: it ends with the request under way.
    var isDismissed = false
    /// Requests that it may still serve, with the one under way.
    private(set) var requestsLeft = Int.max
    /// What it was counted as; nil when it was not.
    private var place: ConnectionPlace?

    /// Takes over what was accepted, and what it was counted as.
    init(
        _ transport: any Transport, peer: SocketAddress, listener: ServedListener, state: LoopState,
        place: ConnectionPlace? = nil
    ) {
        self.place = place
        requestsLeft = listener.requestLimit
        self.transport = transport
        self.listener = listener
        self.state = state
        waiter = Waiter(loop: state.loop)
        self.peer = ClientPeer(peer, listener: listener)
        awaitsProxyHeader = listener.listener.expectsProxyHeader
        transport.waiter = waiter
    }

    /// A stream of an HTTP/2 connection: one request, by the same peer.
    init(_ stream: HTTP2Stream, of connection: ClientConnection) {
        transport = stream
        listener = connection.listener
        state = connection.state
        waiter = Waiter(loop: state.loop)
        peer = connection.peer
        awaitsProxyHeader = false
        session = connection.session
        stream.waiter = waiter
    }

    /// Whether what the client sends is encrypted on its way here, or to the load balancer in front.
    var isEncrypted: Bool { session != nil || peer.isEncryptedInFront }

    /// Takes over what a load balancer says about the peer.
    ///
    /// - Returns: false when the peer has too many connections already.
    func adopt(_ header: ProxyHeader) -> Bool {
        guard let address = peer.adopt(header, listener: listener) else { return true }
        if place == nil { return true }
        guard let place = listener.place(ofNamed: address) else { return false }
        self.place = place
        return true
    }

    /// Makes the connection known; its task starts with `run`.
    func open() {
        idleSince = state.loop.now
        if !transport.carriesOneMessage {
            state.recorder.connection(.opened, listener: listener.name)
        }
        state.began(self)
    }

    /// Serves requests until the connection ends, or until it is idle: then the task ends, and the
    /// next byte starts another one, which costs a microsecond. A waiting task costs kilobytes, a
    /// sleeping connection 400 bytes.
    func run() async {
        if transport.carriesOneMessage { return await serveStreams() }
        if awaitsProxyHeader {
            guard await readProxyHeader() else { return end() }
            awaitsProxyHeader = false
        }
        if listener.tls != nil && session == nil {
            guard await secure() else {
                if transport.isBroken && !transport.isPeerClosed { await linger() }
                return end()
            }
            if session.map({ $0.alpn.elementsEqual("h2".utf8) }) == true {
                if HTTP2ClientConnection(self, received: nil) == nil { end() }
                return
            }
        }
        var fate = Fate.keepAlive
        serving: while fate == .keepAlive {
            switch await next() {
            case .exchange(let exchange):
                setActive(true)
                requestsLeft &-= 1
                fate = await serve(exchange)
                idleSince = state.loop.now
                hasServed = true
                if fate == .keepAlive { await endTurn() }
            case .nothing:
                isAsleep = true
                waiter.sleep(self, until: idleDeadline)
                return
            case .http2(let exchange):
                let connection = HTTP2ClientConnection(self, received: exchange.input)
                state.giveBack(exchange)
                if connection != nil { return }
                break serving
            case .end: break serving
            }
        }
        if session != nil && fate != .reset { await awaitHandOver() }
        if fate == .linger || fate != .reset && isSending { await linger() }
        if fate == .reset { transport.resetOnClose() }
        end()
    }

    /// Closes the connection and gives its place up.
    func end() {
        state.ended(self)
        waiter.invalidate()
        transport.close()
        if let place { state.leave(listener, place) }
        place = nil
        state.recorder.connection(.closed(wasActive: isActive), listener: listener.name)
    }

    /// Something outside changed (draining): look again.
    func wake() {
        waiter.wake()
    }

    /// Sleeps until something else than the client is ready, or until `deadline`.
    ///
    /// - Returns: nil when the client is gone. One that was gone before wakes nobody any more.
    func waitUnlessGone(until deadline: MonotonicInstant) async -> WakeReason? {
        if transport.isPeerClosed || isAborted { return nil }
        let reason = await waiter.wait(until: deadline)
        return transport.isPeerClosed || isAborted ? nil : reason
    }

    /// Since when nothing has been under way here; nil while something is, and for a stream.
    var idleTime: MonotonicInstant? {
        isActive || isDismissed || transport.carriesOneMessage ? nil : idleSince
    }

    /// Ends an idle connection whose place is needed, and any other one with the request under way.
    ///
    /// - Returns: whether it is over by now.
    func dismiss() -> Bool {
        isDismissed = true
        if isAsleep && !transport.isReadable {
            end()
            return true
        }
        waiter.wake()
        return false
    }

    /// One request more begins as a stream of the connection.
    func countStream() {
        requestsLeft &-= 1
        if requestsLeft != 0 { return }
        state.recorder.connection(.limited(.requestsPerConnection), listener: listener.name)
    }

    /// Nothing is under way, as of now.
    func noteIdle(since instant: MonotonicInstant) {
        idleSince = instant
    }

    /// Ends the connection at once; its task notices by failing reads and writes.
    func abort() {
        isAborted = true
        transport.breakOff()
        waiter.wake()
    }

    // MARK: One request after the other

    /// Bytes of the next request that came behind the last one.
    var leftover: Exchange?
    private var hasSentMore = false

    /// The client pipelines: closing with its bytes unread would reset the connection, and what it
    /// has not yet got of the last answer would be lost.
    private var isSending: Bool {
        (hasSentMore || transport.isReadable) && !transport.isPeerClosed
    }

    /// Serves one request, and keeps what came behind it.
    func serve(_ exchange: Exchange) async -> Fate {
        let fate = await exchange.serve(self)
        hasSentMore = !exchange.input.isEmpty
        if fate == .keepAlive && hasSentMore {
            leftover = exchange
        } else {
            state.giveBack(exchange)
        }
        return fate
    }

    /// The client was silent for too long, which is how most connections end.
    func noteIdleTimeout() {
        state.recorder.connection(.limited(.idleTimeout), listener: listener.name)
    }

    /// When it has been silent for too long.
    var idleDeadline: MonotonicInstant {
        let patience = listener.idleNanoseconds
        return idleSince.advanced(
            byNanoseconds: state.isDraining ? min(patience, Self.drainGraceNanoseconds) : patience)
    }

    /// The process ends, and nothing has come for a while.
    var isDrained: Bool { state.isDraining && state.loop.now >= idleDeadline }

    /// Lets others go on: a client that pipelines without end gives this task no reason to sleep.
    private func endTurn() async {
        requestsInTurn += 1
        if requestsInTurn < listener.turnLimit { return }
        requestsInTurn = 0
        if leftover == nil && !transport.isReadable { return }
        state.recorder.connection(.limited(.pipelined), listener: listener.name)
        await Task.yield()
    }

    /// Notes, for the metrics, whether a request is under way.
    func setActive(_ isActive: Bool) {
        if self.isActive == isActive || transport.carriesOneMessage { return }
        self.isActive = isActive
        state.recorder.connection(isActive ? .becameActive : .becameIdle, listener: listener.name)
    }
}

extension ClientConnection: Sleeper {
    func awaken(_ reason: WakeReason) {
        isAsleep = false
        if reason == .timedOut && !transport.isReadable {
            if !state.isDraining { noteIdleTimeout() }
            end()
        } else {
            state.startServing(self)
        }
    }
}
