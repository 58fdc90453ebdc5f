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
    private static let lingerTime = Duration.seconds(2)
    /// How long a connection is left open, while the process drains, since it was used last: the
    /// next request may be on its way, and closing would lose it. Its answer closes the connection.
    private static let drainGraceNanoseconds: Int64 = 1_000_000_000
    private static let lingerBytes = 1 << 20
    /// How long a task waits for the next request before it ends.
    private static let taskIdleNanoseconds: Int64 = 100_000_000

    /// What all requests of this loop share.
    let state: LoopState
    /// What carries the client's bytes: a socket, TLS over one, or one stream of HTTP/2.
    private(set) var transport: any Transport
    /// Where the connection's task sleeps; lent to the upstream sockets that it uses.
    let waiter: Waiter
    /// The IP address of the peer: who the connection came from, or who a PROXY header says that it
    /// is passed on for. Nil on a local socket.
    private(set) var peerAddress: IPAddress?
    /// The settings that the connection was accepted under.
    private(set) var listener: ServedListener
    /// The peer's address as text, without port.
    private(set) var peerHost: String
    /// The peer is one of the listener's `trusted_proxies`.
    private(set) var isPeerTrusted: Bool
    /// The address of the load balancer whose PROXY header named the peer, as text; nil without one.
    private(set) var balancerHost: String?
    /// The connection begins with a PROXY header that was not read yet.
    private var awaitsProxyHeader: Bool
    /// The client's connection to the load balancer is encrypted, says that one.
    private var isEncryptedInFront = false
    /// What the TLS handshake found out; nil on plain connections.
    private(set) var session: TLSSession?
    /// Where it is among the connections of its loop; nil while it is none of them.
    var indexInLoop: Int?
    private var isActive = false
    /// The connection was given up from outside.
    private(set) var isAborted = false
    /// Its task waits for another stream, or is to end.
    private var isResting = false
    private var requestsInTurn: UInt8 = 0
    private var hasServed = false
    /// The latest request came right behind the one before: the next one is worth a task that
    /// waits.
    private var isBusy = false
    private(set) var idleSince = MonotonicInstant.never
    /// Its task has ended, and the next byte starts another one.
    private var isAsleep = false
    /// Its place is needed: it ends with the request under way.
    private(set) var isDismissed = false
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
        peerHost = peer.host
        let address = IPAddress(bytes: peer.ipBytes.span)
        peerAddress = address
        isPeerTrusted = address.map(listener.isTrusted) ?? listener.listener.trustsLocalPeers
        awaitsProxyHeader = listener.listener.expectsProxyHeader
        transport.waiter = waiter
    }

    /// A stream of an HTTP/2 connection: one request, by the same peer.
    init(_ stream: HTTP2Stream, of connection: ClientConnection) {
        transport = stream
        listener = connection.listener
        state = connection.state
        waiter = Waiter(loop: state.loop)
        peerHost = connection.peerHost
        peerAddress = connection.peerAddress
        isPeerTrusted = connection.isPeerTrusted
        balancerHost = connection.balancerHost
        awaitsProxyHeader = false
        isEncryptedInFront = connection.isEncryptedInFront
        session = connection.session
        stream.waiter = waiter
    }

    /// Whether what the client sends is encrypted on its way here, or to the load balancer in front.
    var isEncrypted: Bool { session != nil || isEncryptedInFront }

    /// Takes over what a load balancer says about the peer.
    ///
    /// - Returns: false when the peer has too many connections already.
    func adopt(_ header: ProxyHeader) -> Bool {
        // A balancer's own connections, such as health checks, have the peer that they have.
        if header.origin == .balancer { return true }
        balancerHost = peerHost
        isEncryptedInFront = header.isEncrypted
        guard case .client(let address) = header.origin else {
            // Somebody's, and not the balancer's: nothing that it says is to be believed.
            isPeerTrusted = false
            return true
        }
        peerAddress = address
        peerHost = address.description
        isPeerTrusted = listener.isTrusted(address)
        if place == nil { return true }
        guard let place = listener.place(ofNamed: address) else { return false }
        self.place = place
        return true
    }

    /// Serves another stream with the task that served one before: `run` goes on with it.
    func adopt(_ stream: HTTP2Stream, of connection: ClientConnection) {
        transport = stream
        listener = connection.listener
        peerHost = connection.peerHost
        peerAddress = connection.peerAddress
        isPeerTrusted = connection.isPeerTrusted
        balancerHost = connection.balancerHost
        isEncryptedInFront = connection.isEncryptedInFront
        session = connection.session
        stream.waiter = waiter
        open()
        isResting = false
        waiter.wake()
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
        if fate == .linger || fate != .reset && isSending { await linger() }
        if fate == .reset { transport.resetOnClose() }
        end()
    }

    /// Serves one stream after the other, of whichever connection: to begin a task for each, with
    /// memory of its own, would cost as much as half of a request.
    private func serveStreams() async {
        while true {
            if case .exchange(let exchange) = await next() {
                // The stream tells the client itself what is complete and what is not needed.
                if await serve(exchange) == .reset { transport.resetOnClose() }
            }
            state.ended(self)
            transport.close()
            transport = ClosedTransport.shared
            session = nil
            isAborted = false
            isDismissed = false
            isResting = true
            guard state.rest(self) else { return waiter.invalidate() }
            while isResting { _ = await waiter.wait() }
            if !hasStream { return waiter.invalidate() }
        }
    }

    private var hasStream: Bool { transport.carriesOneMessage }

    /// Ends the task that waits for another stream.
    func stopResting() {
        isResting = false
        waiter.wake()
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

    // MARK: TLS

    /// Completes the handshake, for which a client has as long as for the head of a request.
    ///
    /// - Returns: false when there is nothing to serve.
    private func secure() async -> Bool {
        guard let stream = transport as? TLSTransport else { return false }
        let deadline = idleSince.advanced(byNanoseconds: listener.headerNanoseconds)
        do throws(TLSError) {
            while !isAborted && !isDismissed && !isDrained {
                if transport.isReadable {
                    guard await state.handshakes.take(waiter, until: deadline) else {
                        throw .handshakeTimedOut
                    }
                }
                if try stream.handshake(), let session = stream.session {
                    self.session = session
                    idleSince = state.loop.now
                    state.recorder.connection(
                        .secured(isResumed: session.isResumed), listener: listener.name)
                    return true
                }
                let limit = state.isDraining ? min(deadline, idleDeadline) : deadline
                if await waiter.wait(until: limit) == .timedOut && limit == deadline {
                    throw .handshakeTimedOut
                }
            }
        } catch {
            state.recorder.connection(.handshakeFailed(error.kind), listener: listener.name)
            state.log.log(
                .debug, "TLS handshake failed",
                [
                    ("listener", listener.name), ("client", peerHost),
                    ("kind", error.kind.rawValue), ("error", error.detail),
                ])
        }
        return false
    }

    // MARK: One request after the other

    /// Bytes of the next request that came behind the last one.
    private var leftover: Exchange?
    private var hasSentMore = false

    /// The client pipelines: closing with its bytes unread would reset the connection, and what it
    /// has not yet got of the last answer would be lost.
    private var isSending: Bool {
        (hasSentMore || transport.isReadable) && !transport.isPeerClosed
    }

    private func serve(_ exchange: Exchange) async -> Fate {
        let fate = await exchange.serve(self)
        hasSentMore = !exchange.input.isEmpty
        if fate == .keepAlive && hasSentMore {
            leftover = exchange
        } else {
            state.giveBack(exchange)
        }
        return fate
    }

    private enum Next {
        /// The first bytes of a request are in its buffer.
        case exchange(Exchange)
        /// Nothing came for a while.
        case nothing
        /// The connection begins as HTTP/2 does; its bytes so far are in the buffer.
        case http2(Exchange)
        case end
    }

    /// Waits for the first bytes of a request.
    private func next() async -> Next {
        if let exchange = leftover {
            leftover = nil
            if !isDismissed { return .exchange(exchange) }
            // Pipelined requests that were not begun are the client's to repeat (RFC 9112, 9.3.2).
            state.giveBack(exchange)
            return .end
        }
        let patience = state.loop.now.advanced(byNanoseconds: Self.taskIdleNanoseconds)
        var reason = WakeReason.ready
        while !isAborted {
            // TLS may have something to say that is no request: a ticket, a new key.
            if session != nil { _ = try? transport.flush() }
            if transport.isReadable {
                let exchange = state.takeExchange()
                switch try? transport.read(into: exchange.input) {
                case .bytes:
                    isBusy =
                        hasServed
                        && state.loop.now
                            < idleSince.advanced(byNanoseconds: Self.taskIdleNanoseconds)
                    if isFirst { return await chooseProtocol(exchange) }
                    return .exchange(exchange)
                case .wouldBlock: state.giveBack(exchange)
                case .endOfStream, nil:
                    state.giveBack(exchange)
                    return .end
                }
            }
            if isDismissed || isDrained { return .end }
            if state.loop.now >= idleDeadline {
                noteIdleTimeout()
                return .end
            }
            setActive(false)
            requestsInTurn = 0
            if reason == .timedOut || !isBusy { return .nothing }
            reason = await waiter.wait(until: patience)
        }
        return .end
    }

    /// A connection that has not shown yet what it speaks.
    private var isFirst: Bool {
        !hasServed && listener.servesHTTP2 && !transport.carriesOneMessage && session == nil
    }

    /// HTTP/2 with prior knowledge begins with 24 bytes that no HTTP/1.1 request begins with (RFC
    /// 9113, section 3.3).
    private func chooseProtocol(_ exchange: Exchange) async -> Next {
        let deadline = state.loop.now.advanced(byNanoseconds: listener.headerNanoseconds)
        let input = exchange.input
        while true {
            switch HTTP2Preface.compare(input.bytes) {
            case .complete: return .http2(exchange)
            case .different where listener.servesHTTP1: return .exchange(exchange)
            case .different:
                state.giveBack(exchange)
                return .end
            case .begun: break
            }
            input.reserve(2048)
            switch try? transport.read(into: input) {
            case .bytes: continue
            case .wouldBlock where await isReady(until: deadline): continue
            case .wouldBlock, .endOfStream, nil:
                state.giveBack(exchange)
                return .end
            }
        }
    }

    /// - Returns: false when the time is over, or the connection's place is needed.
    private func isReady(until deadline: MonotonicInstant) async -> Bool {
        if isDismissed { return false }
        return await waiter.wait(until: deadline) == .ready
    }

    /// The client was silent for too long, which is how most connections end.
    func noteIdleTimeout() {
        state.recorder.connection(.limited(.idleTimeout), listener: listener.name)
    }

    private var idleDeadline: MonotonicInstant {
        let patience = listener.idleNanoseconds
        return idleSince.advanced(
            byNanoseconds: state.isDraining ? min(patience, Self.drainGraceNanoseconds) : patience)
    }

    /// The process ends, and nothing has come for a while.
    private var isDrained: Bool { state.isDraining && state.loop.now >= idleDeadline }

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

    /// Closes our side and reads on for a while: bytes that arrive at a closed socket would reset
    /// the connection and could destroy the answer on its way.
    private func linger() async {
        transport.finishWriting()
        let deadline = state.loop.now.advanced(by: Self.lingerTime)
        let scratch = ByteBuffer(capacity: 4096)
        var read = 0
        while read < Self.lingerBytes && !isAborted {
            switch try? transport.read(into: scratch) {
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
