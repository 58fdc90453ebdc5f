internal import Attestation
internal import Configuration
internal import HTTP
internal import Reactor
internal import Replay

/// Everything that the requests of one event loop share: plain, unlocked state that only this
/// loop's tasks touch.
final class LoopState {
    /// As many as a few busy HTTP/2 connections have requests under way.
    private static let spareExchangeLimit = 256
    private static let restingLimit = 256
    private static let notableSurplus = 16

    /// The loop itself.
    let loop: EventLoop
    /// Where each request's record goes.
    let recorder: any RequestRecorder
    /// Where everything else that is worth a line goes.
    let log: any EventLog

    /// The configuration of requests that begin now.
    private(set) var serving: ServingConfiguration
    /// In the order of the configuration's upstreams.
    private(set) var pools: [UpstreamPool]
    /// How many loops there are; that does not change while the process lives.
    private let loopCount: Int
    /// The newest verdicts of the checks.
    private var health = HealthSnapshot()
    /// What operators took out of service.
    private var drains = DrainSnapshot()
    /// What tokens are verified with.
    let keys: LoopKeys
    /// The verified tokens; empty after each change of configuration.
    let tokens: TokenCache
    /// Makes the ids of requests.
    var identifiers: RequestIDGenerator
    /// The way to the claim store; nil while no configuration had a route with replay protection.
    private(set) var claims: LoopClaims?
    /// The line `Date` of our own answers.
    var date = DateStamp()
    /// What the log says about connections to servers for which nothing is left.
    var exhaustion = OutageNotice()
    /// No request may begin any more.
    private(set) var isDraining = false
    /// Memory is short: requests and connections are refused.
    var isShedding = false
    /// Client connections of the process.
    let ledger: ConnectionLedger
    /// What becomes of those that there is no room for.
    let turnedAway = TurnedAway()
    /// What the log says of them.
    var notices = LimitNotices()
    /// When idle connections may be looked for again.
    var looksForRoomAt = MonotonicInstant(nanoseconds: 0)
    private(set) var isOver = false

    /// Room for bytes that are taken from a transport and handed on at once.
    let scratch = ByteBuffer(capacity: 64 << 10)
    /// Where the TLS connections of the loop collect what they send.
    let tlsScratch = ByteBuffer(capacity: 1024)
    /// What the HTTP/2 connections of the loop lend to their streams.
    let http2Memory = HTTP2Memory()
    /// Whose turn it is to compute a signature.
    let handshakes: HandshakeTurns
    /// Whose turn it is to begin the requests that came all at once.
    let requestTurns: RequestTurns
    private var refusedHeaders = RefusedHeaders()
    /// What those hold that wait for another stream.
    let closedTransport = ClosedTransport()
    /// Room for the bytes of WebSockets, whose tasks may run while `scratch` is in use.
    let tunnelScratch = ByteBuffer(capacity: TunnelLeg.chunk)
    /// Starts a task that runs a connection.
    var startServing: (ClientConnection) -> Void = { _ in }
    /// Has a connection that has more to read do so when others had their turn.
    var continueReading: (HTTP2Link) -> Void = { _ in }

    private var spareExchanges = Spares<Exchange>(limit: spareExchangeLimit)
    /// In no order; each knows its index.
    private var connections: [ClientConnection] = []
    /// Tasks that served a stream of HTTP/2 and wait for another.
    private var resting = Spares<ClientConnection>(limit: restingLimit)
    private var flushes = Backlog<HTTP2Link>()

    init(
        loop: EventLoop, serving: ServingConfiguration, keys: KeySnapshot,
        recorder: any RequestRecorder,
        log: any EventLog, requestRefetch: @escaping @Sendable (String) -> Void,
        ledger: ConnectionLedger = ConnectionLedger()
    ) {
        self.ledger = ledger
        self.loop = loop
        self.serving = serving
        self.recorder = recorder
        self.log = log
        self.keys = LoopKeys(keys, loop: loop, requestRefetch: requestRefetch)
        tokens = TokenCache(capacityBytes: serving.configuration.server.tokenCacheBytes)
        identifiers = RequestIDGenerator()
        handshakes = HandshakeTurns(loop: loop)
        requestTurns = RequestTurns(loop: loop)
        loopCount = serving.workerCount
        pools = zip(serving.configuration.upstreams, serving.addresses).map {
            UpstreamPool(
                $0, addresses: $1, tls: serving.tls.client(of: $0.name), loops: serving.workerCount)
        }
    }

    /// Requests whose head is complete from now on are served by `next`. Pools of unchanged
    /// upstreams keep their connections. Projects are known by their place, so configuration and
    /// keys change together.
    func adopt(_ next: ServingConfiguration, keys: KeySnapshot) {
        var unclaimed = pools
        pools = zip(next.configuration.upstreams, next.addresses).map { upstream, addresses in
            let same = unclaimed.firstIndex { pool in
                pool.upstream == upstream && pool.tls === next.tls.client(of: upstream.name)
            }
            guard let same else {
                let pool = UpstreamPool(
                    upstream, addresses: addresses, tls: next.tls.client(of: upstream.name),
                    loops: loopCount)
                pool.adopt(health, now: loop.now)
                pool.adopt(drains, now: loop.now)
                return pool
            }
            let before = unclaimed.remove(at: same)
            return successor(of: before, addresses)
        }
        for pool in unclaimed { pool.retire() }
        let isSameConfiguration = serving.table === next.table
        serving = next
        if !isSameConfiguration {
            tokens.removeAll()
            self.keys.forgetRefetches()
        }
        self.keys.replace(with: keys)
    }

    /// The pool itself while its addresses are the same; else another one that goes on with the
    /// servers that are still there.
    private func successor(of pool: UpstreamPool, _ addresses: [SocketAddress]) -> UpstreamPool {
        if pool.servers.map(\.label) == addresses.map(\.description) { return pool }
        let next = UpstreamPool(
            pool.upstream, addresses: addresses, tls: pool.tls, known: pool.servers,
            line: pool.line, loops: loopCount)
        pool.retire(except: next.servers)
        next.adopt(health, now: loop.now)
        next.adopt(drains, now: loop.now)
        return next
    }

    /// Which servers are healthy, unless something newer is known.
    func adopt(_ next: HealthSnapshot) {
        if next.change < health.change { return }
        health = next
        for pool in pools { pool.adopt(next, now: loop.now) }
    }

    /// Which servers get no new requests, unless something newer is known.
    func adopt(_ next: DrainSnapshot) {
        if next.change < drains.change { return }
        drains = next
        for pool in pools { pool.adopt(next, now: loop.now) }
    }

    // MARK: Claims

    /// Opens this loop's way to the claim store.
    func open(_ store: any ClaimStore, health: StoreHealth) {
        claims = LoopClaims(store, health: health, loop: loop)
    }

    /// The loop ends: nobody claims any more.
    func closeClaims() {
        claims?.close()
        claims = nil
    }

    /// A connection was closed for what came in place of its PROXY header.
    func noteRefusedHeader(_ result: ProxyHeaderResult, from peer: String, listener: String) {
        refusedHeaders.note(result, from: peer, listener: listener, at: loop.now, log)
    }

    // MARK: Exchanges

    /// Lends an exchange for a request: a spare one, or a new one.
    func takeExchange() -> Exchange {
        spareExchanges.take() ?? Exchange(self)
    }

    /// Takes an exchange back. What it still holds of a request is forgotten.
    func giveBack(_ exchange: consuming Exchange) {
        exchange.shrink()
        spareExchanges.giveBack(exchange)
    }

    // MARK: Connections

    /// Client connections that are open.
    var connectionCount: Int { connections.count }

    /// The same, in no order; streams of HTTP/2 are among them.
    var openConnections: [ClientConnection] { connections }

    /// Connections are open for further requests.
    var keepsConnections: Bool { !isDraining && !isShedding }

    /// A client connection was accepted.
    func began(_ connection: ClientConnection) {
        connection.indexInLoop = connections.count
        connections.append(connection)
    }

    /// A client connection is over.
    func ended(_ connection: ClientConnection) {
        guard let index = connection.indexInLoop else { return }
        connection.indexInLoop = nil
        let last = connections.removeLast()
        if last === connection { return }
        connections[index] = last
        last.indexInLoop = index
    }

    /// A task has served its stream and would serve another.
    ///
    /// - Returns: false when it had better end.
    func rest(_ connection: ClientConnection) -> Bool {
        if isOver || resting.isFull { return false }
        resting.giveBack(connection)
        return true
    }

    /// One that waits for a stream, the one that waited least; nil when there is none.
    func takeResting() -> ClientConnection? {
        resting.take()
    }

    /// Sends what a connection's streams write in this turn of the loop all at once.
    func flushAfterJobs(_ link: HTTP2Link) {
        flushes.append(link)
    }

    /// The jobs that were ready have run: what they wrote goes out, and then those in line have their
    /// turn.
    ///
    /// - Returns: whether somebody is left in line, for whom the next round must not wait.
    func endRound() -> Bool {
        flushConnections()
        if !requestTurns.isAwaited { return false }
        requestTurns.run()
        // Nothing else would wake the loop for what was written meanwhile.
        flushConnections()
        return requestTurns.isAwaited
    }

    private func flushConnections() {
        // What is sent may call for more, and nothing else would wake the loop for that.
        while !flushes.isEmpty {
            let due = flushes.take()
            for link in due { link.flush() }
            flushes.reuse(due)
        }
    }

    /// Lets requests in flight finish and closes what is idle.
    func startDraining() {
        isDraining = true
        for connection in connections { connection.wake() }
    }

    /// Ends every connection that is still open, whatever it is doing.
    func abortAll() {
        spareExchanges.removeAll()
        isOver = true
        resting.removeAll { $0.stopResting() }
        for connection in connections { connection.abort() }
    }

    /// Regular housekeeping.
    func sweep() {
        for pool in pools { pool.sweep(now: loop.now) }
        serving.limits.purge(at: loop.now.nanoseconds)
        releaseSpares()
    }

    /// Gives back the buffers that no request uses.
    func releaseSpareExchanges() {
        spareExchanges.removeAll()
    }

    /// Gives the buffers of a burst that is over back to the system.
    private func releaseSpares() {
        let exchanges = spareExchanges.sweep()
        let others = http2Memory.sweep() + resting.sweep { $0.stopResting() }
        if max(exchanges, others) >= Self.notableSurplus { Memory.releaseFreePages() }
    }
}
