internal import Configuration
internal import HTTP
internal import Reactor
internal import TLS

/// The servers of one upstream, and to which of them a request goes, for one loop.
final class UpstreamPool {
    /// How long a server that could not be reached is passed over while others can.
    private static let avoidance = Duration.seconds(1)

    /// The upstream as configured.
    let upstream: Upstream
    /// Longest time to establish a connection.
    let connectNanoseconds: Int64
    /// From the end of the request to the head of the answer.
    let responseHeadNanoseconds: Int64
    /// Between two bytes, and for an idle connection.
    let idleNanoseconds: Int64
    /// How long a request may wait for room.
    let queueNanoseconds: Int64
    private let slowStartNanoseconds: Int64
    /// What connections are made with; nil where they are plain text.
    let tls: TLSContext?
    /// One for each resolved address.
    let servers: [UpstreamServer]
    /// The last choice was made among all servers, because too few are available.
    private(set) var isPanicking = false
    /// Those that no server takes now.
    let line: WaitingLine
    /// How many may wait there.
    let queueLimit: Int
    /// A choice came to nothing because servers have as many requests as they take.
    private(set) var isFull = false
    /// Requests that one server takes from this loop.
    private let capacity: Int
    /// How many requests may still be tried once more.
    var budget = RetryBudget()
    private var next = 0
    private var dice = SeededDice()

    /// A pool of servers.
    ///
    /// - Parameters:
    ///   - known: Servers of the pool before it; those of the same address are taken over with their
    ///     connections and with what is known about them.
    ///   - line: The line of the pool before it.
    ///   - loops: Among how many the limits are divided.
    init(
        _ upstream: Upstream, addresses: [SocketAddress], tls: TLSContext? = nil,
        known: [UpstreamServer] = [], line: WaitingLine = WaitingLine(), loops: Int = 1
    ) {
        let limits = upstream.limits
        capacity = limits.connections.map { max(1, $0 / max(1, loops)) } ?? .max
        queueLimit = limits.queue * addresses.count / max(1, loops)
        self.line = line
        self.upstream = upstream
        self.tls = tls
        connectNanoseconds = upstream.connectTimeout.nanoseconds
        responseHeadNanoseconds = upstream.responseHeaderTimeout.nanoseconds
        queueNanoseconds = limits.queueTimeout.nanoseconds
        slowStartNanoseconds = upstream.slowStart.nanoseconds
        idleNanoseconds = upstream.idleTimeout.nanoseconds
        servers = addresses.map { address in
            let label = address.description
            return known.first { $0.label == label } ?? UpstreamServer(address: address)
        }
    }

    /// Requests share connections.
    var isMultiplexed: Bool { upstream.serverProtocol.isMultiplexed }

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
    /// - Parameters:
    ///   - tried: Bits of the servers that this request tried already.
    ///   - key: What the client is, for `hash`; nil where it has no such key.
    /// - Returns: the index of the server, or nil when all were tried.
    func choose(tried: UInt64, now: MonotonicInstant, key: UInt64? = nil) -> Int? {
        isFull = false
        isPanicking = wouldPanic(at: now)
        if servers.count == 1 {
            if tried & 1 != 0 || servers[0].isDraining { return nil }
            if !isPanicking && isAnyAway(at: now) { return nil }
            if servers[0].activeCount >= capacity {
                isFull = true
                return nil
            }
            servers[0].activeCount += 1
            return 0
        }
        // Among equals those that did not fail just now, and that are not just coming back.
        let index =
            candidate(tried: tried, at: now, key, isChoosy: true)
            ?? candidate(tried: tried, at: now, key, isChoosy: false)
        guard let index else { return nil }
        isFull = false
        next = (index + 1) % servers.count
        servers[index].activeCount += 1
        return index
    }

    /// The request on a server is over.
    func release(_ index: Int) {
        servers[index].activeCount -= 1
        line.callNext()
    }

    /// The server could not be reached.
    func avoid(_ index: Int, now: MonotonicInstant) {
        servers[index].avoidedUntil = now.advanced(by: Self.avoidance)
    }

    /// Leaves a server alone for a while, unless too few would be left.
    ///
    /// - Returns: for how long; nil when it stays.
    func eject(_ index: Int, now: MonotonicInstant) -> Duration? {
        let server = servers[index]
        // One that drains is away already.
        if server.isDraining || !server.health.isAvailable(at: now) { return nil }
        if hasTooFew(at: now, away: 1) { return nil }
        return servers[index].health.eject(at: now, upstream.ejection, jitter: dice.next())
    }

    /// The verdicts of the checks.
    func adopt(_ health: HealthSnapshot, now: MonotonicInstant) {
        for server in servers {
            let passes = !health.isUnhealthy(server.label, of: upstream.name)
            server.health.adopt(passesChecks: passes, at: now)
        }
    }

    /// Which servers operators took out of service.
    func adopt(_ drains: DrainSnapshot, now: MonotonicInstant) {
        for server in servers {
            let wasDraining = server.isDraining
            server.adopt(
                isDraining: drains.isDraining(server.label, of: upstream.name), at: now)
            // Who waits for others waits no longer than it takes to use this one.
            if wasDraining && !server.isDraining { line.callNext(max: capacity) }
        }
    }

    /// Whether a choice would be made among all servers, because too few are available.
    func wouldPanic(at now: MonotonicInstant) -> Bool {
        isAnyAway(at: now) && hasTooFew(at: now, away: 0)
    }

    private func isAnyAway(at now: MonotonicInstant) -> Bool {
        servers.contains { !$0.health.isAvailable(at: now) }
    }

    /// Whether too few servers to carry the load are available, or would be without some more. Those
    /// that drain do not count: whoever took them away knew what is left.
    private func hasTooFew(at now: MonotonicInstant, away: Int) -> Bool {
        var (left, all) = (-away, 0)
        for server in servers where !server.isDraining {
            all += 1
            if server.health.isAvailable(at: now) { left += 1 }
        }
        if away > 0 && left < 1 { return true }
        return Double(left) * 100 < upstream.panicThreshold * Double(all)
    }

    private func candidate(
        tried: UInt64, at now: MonotonicInstant, _ key: UInt64?, isChoosy: Bool
    ) -> Int? {
        var best: Int?
        var bestWeight: UInt64 = 0
        for offset in servers.indices {
            let index = (next + offset) % servers.count
            if index < 64 && tried & (1 << UInt64(index)) != 0 { continue }
            let server = servers[index]
            if server.isDraining { continue }
            if !isPanicking && !server.health.isAvailable(at: now) { continue }
            if server.activeCount >= capacity {
                isFull = true
                continue
            }
            if isChoosy && (server.avoidedUntil > now || isSpared(server, at: now, key)) {
                continue
            }
            if let key {
                let weight = RendezvousHash.weight(ofKey: key, server: server.hash)
                if best == nil || weight > bestWeight { (best, bestWeight) = (index, weight) }
                continue
            }
            if upstream.balance == .roundRobin { return index }
            if let current = best, servers[current].activeCount <= server.activeCount { continue }
            best = index
        }
        return best
    }

    /// A server that came back is passed over less and less; keys come back one by one.
    private func isSpared(
        _ server: UpstreamServer, at now: MonotonicInstant, _ key: UInt64?
    ) -> Bool {
        let share = server.health.share(at: now, slowStart: slowStartNanoseconds)
        if share >= 1 { return false }
        guard let key else { return dice.next() >= share }
        return !RendezvousHash.isWithin(share, key: key, server: server.hash)
    }
}
