internal import Configuration
internal import HTTP
internal import Reactor
internal import TLS

/// One server of an upstream as one loop sees it.
final class UpstreamServer {
    /// A connection that nobody uses.
    struct IdleConnection {
        /// Its last answer was read to the end.
        let socket: any Transport
        /// When it became idle.
        let since: MonotonicInstant
    }

    /// One resolved address.
    let address: SocketAddress
    /// Requests that are under way on it, from this loop.
    fileprivate(set) var activeCount = 0
    /// Its idle connections; the one that was used last is the last.
    fileprivate(set) var idle: [IdleConnection] = []
    /// Connections that many requests share.
    fileprivate var shared: [HTTP2UpstreamConnection] = []
    /// A request is opening one of these, and others wait for it.
    fileprivate var isConnecting = false
    fileprivate var waiting: [Waiter] = []
    /// A server that refused a connection is asked again only after this, unless there is no other.
    fileprivate var avoidedUntil = MonotonicInstant(nanoseconds: 0)

    /// A server that nothing is known about yet.
    init(address: SocketAddress) {
        self.address = address
    }
}

/// The servers of one upstream and the connections to them that lie idle, for one loop.
final class UpstreamPool {
    /// How long a server that could not be reached is passed over while others can.
    private static let avoidance = Duration.seconds(1)
    /// A connection that lay idle for longer, or that may have something to read, is asked whether
    /// it still stands before it is used: what came unasked would be taken for the next answer
    /// (pitfall W10).
    private static let suspicionNanoseconds: Int64 = 250_000_000

    /// The upstream as configured.
    let upstream: Upstream
    /// Longest time to establish a connection.
    let connectNanoseconds: Int64
    /// From the end of the request to the head of the answer.
    let responseHeadNanoseconds: Int64
    /// Between two bytes, and for an idle connection.
    let idleNanoseconds: Int64
    /// What connections are made with; nil where they are plain text.
    let tls: TLSContext?
    /// One for each resolved address.
    let servers: [UpstreamServer]
    private var next = 0
    private var isRetired = false

    /// A pool without connections.
    init(_ upstream: Upstream, addresses: [SocketAddress], tls: TLSContext? = nil) {
        self.upstream = upstream
        self.tls = tls
        connectNanoseconds = upstream.connectTimeout.nanoseconds
        responseHeadNanoseconds = upstream.responseHeaderTimeout.nanoseconds
        idleNanoseconds = upstream.idleTimeout.nanoseconds
        servers = addresses.map { UpstreamServer(address: $0) }
    }

    /// Requests share connections.
    var isMultiplexed: Bool { upstream.serverProtocol != .http1 }

    /// How a request's body is delimited on the way to a server.
    func framing(for incoming: BodyFraming) -> BodyFraming {
        if isMultiplexed { return .none }
        switch incoming {
        case .chunked, .untilClose: return .chunked
        case .none, .length: return .none
        }
    }

    /// Chooses a server, and counts a request on it until `release`.
    ///
    /// - Parameter tried: Bits of the servers that this request tried already.
    /// - Returns: the index of the server, or nil when all were tried.
    func choose(tried: UInt64, now: MonotonicInstant) -> Int? {
        if servers.count == 1 {
            if tried & 1 != 0 { return nil }
            servers[0].activeCount += 1
            return 0
        }
        let index = candidate(tried: tried, now: now) ?? candidate(tried: tried, now: nil)
        guard let index else { return nil }
        next = (index + 1) % servers.count
        servers[index].activeCount += 1
        return index
    }

    /// The request on a server is over.
    func release(_ index: Int) {
        servers[index].activeCount -= 1
    }

    /// The server could not be reached.
    func avoid(_ index: Int, now: MonotonicInstant) {
        servers[index].avoidedUntil = now.advanced(by: Self.avoidance)
    }

    /// The connection that was used last, when one lies idle and still stands.
    func takeIdle(_ index: Int, now: MonotonicInstant) -> (any Transport)? {
        let server = servers[index]
        for connection in server.shared {
            if let stream = connection.openStream() { return stream }
        }
        while let connection = server.idle.popLast() {
            let socket = connection.socket
            if socket.isPeerClosed || socket.isBroken { continue }
            let isOld = now > connection.since.advanced(byNanoseconds: Self.suspicionNanoseconds)
            if (isOld || socket.isReadable) && !socket.isQuiet() { continue }
            return socket
        }
        return nil
    }

    /// Keeps a connection whose last answer was complete and whose every byte was read.
    func keep(_ socket: any Transport, _ index: Int, now: MonotonicInstant) {
        let server = servers[index]
        socket.waiter = nil
        if isRetired || server.idle.count >= upstream.idleConnections || socket.isPeerClosed {
            socket.close()
            return
        }
        server.idle.append(.init(socket: socket, since: now))
    }

    /// Closes connections that lay idle too long or that the server closed.
    func sweep(now: MonotonicInstant) {
        for server in servers {
            server.idle.removeAll { connection in
                let isOver =
                    connection.socket.isPeerClosed
                    || now > connection.since.advanced(byNanoseconds: idleNanoseconds)
                if isOver { connection.socket.close() }
                return isOver
            }
        }
    }

    /// Closes all that lies idle and keeps nothing more: the upstream left the configuration.
    func retire() {
        isRetired = true
        for server in servers {
            for connection in server.idle { connection.socket.close() }
            server.idle.removeAll()
            let shared = server.shared
            for connection in shared { connection.retire() }
        }
    }

    // MARK: Shared connections

    /// Whether another request is opening a connection that this one can share. One that is opening
    /// it says `finishConnecting` when it knows how that went.
    ///
    /// - Parameter waiter: Is woken then.
    func joinConnecting(_ index: Int, _ waiter: Waiter) -> Bool {
        if !isMultiplexed { return false }
        if servers[index].isConnecting || servers[index].shared.contains(where: \.isGreeting) {
            if !servers[index].waiting.contains(where: { $0 === waiter }) {
                servers[index].waiting.append(waiter)
            }
            return true
        }
        servers[index].isConnecting = true
        return false
    }

    /// The attempt to open a shared connection is over.
    func finishConnecting(_ index: Int) {
        servers[index].isConnecting = false
        wakeWaiting(servers[index])
    }

    private func wakeWaiting(_ server: UpstreamServer) {
        let waiting = server.waiting
        server.waiting.removeAll()
        for waiter in waiting { waiter.wake() }
    }

    /// Shares a fresh connection, and opens its first stream.
    func share(_ transport: any Transport, _ index: Int, _ state: LoopState) -> HTTP2Stream? {
        let server = servers[index]
        let connection = HTTP2UpstreamConnection(
            transport, idleNanoseconds: idleNanoseconds, patience: connectNanoseconds, state: state,
            onGreeting: { [unowned self] in wakeWaiting(server) },
            onEnd: { [unowned self] ended in
                server.shared.removeAll { $0 === ended }
                wakeWaiting(server)
            })
        guard let connection else { return nil }
        server.shared.append(connection)
        let stream = connection.openStream()
        // Who is served now may have been served by an upstream that is not there any more.
        if isRetired { connection.retire() }
        return stream
    }

    private func candidate(tried: UInt64, now: MonotonicInstant?) -> Int? {
        var best: Int?
        for offset in servers.indices {
            let index = (next + offset) % servers.count
            if index < 64 && tried & (1 << UInt64(index)) != 0 { continue }
            if let now, servers[index].avoidedUntil > now { continue }
            if upstream.balance == .roundRobin { return index }
            if let current = best, servers[current].activeCount <= servers[index].activeCount {
                continue
            }
            best = index
        }
        return best
    }
}
