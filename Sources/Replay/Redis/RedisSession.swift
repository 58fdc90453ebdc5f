internal import Reactor

/// One loop's way to the servers of a store.
final class RedisSession: ClaimSession {
    private enum Route {
        case server(RedisNode)
        case cluster(RedisCluster)
    }

    /// Times that a claim is sent on to another node of a cluster.
    private static let redirectionLimit = 4

    private let loop: EventLoop
    private let context: RedisContext
    private let route: Route
    /// What our claims hold, so that a release does not take somebody else's back. One for all of
    /// them: a session that was answered `claimed` is alone in having claimed that key.
    private let nonce: [UInt8]
    /// EVAL is not permitted: claims stay.
    private var isReleaseDenied = false

    init(_ context: RedisContext, loop: EventLoop) {
        self.context = context
        self.loop = loop
        var nonce: [UInt8] = []
        var random = SystemRandomNumberGenerator()
        RedisKeys.appendBase64URL(random.next(), random.next(), to: &nonce)
        self.nonce = nonce
        switch context.settings.topology {
        case .single(let address):
            route = .server(
                Self.makeNode(address.description, .fixed(address), context, loop))
        case .sentinel(let addresses, let master):
            let sentinels = RedisSentinels(
                addresses, master: master, context: context, loop: loop)
            route = .server(
                Self.makeNode("master \(master)", .sentinels(sentinels), context, loop))
        case .cluster(let seeds):
            let cluster = RedisCluster(seeds: seeds, context: context, loop: loop)
            cluster.start()
            route = .cluster(cluster)
        }
    }

    private static func makeNode(
        _ name: String, _ locator: RedisLocator, _ context: RedisContext, _ loop: EventLoop
    ) -> RedisNode {
        let node = RedisNode(
            name, locator: locator, markerKeys: [context.keys.marker], context: context,
            loop: loop)
        node.start()
        return node
    }

    // MARK: ClaimSession

    func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome
    {
        let purpose = RedisRequest.Purpose.claim(
            nonce: nonce, retainedUntil: claim.retainedUntil,
            wallMilliseconds: claim.at.wallMicroseconds / 1000)
        switch await perform(purpose, of: claim, waiter, deadline) {
        case .forgotten: return .expired
        case .failure(let failure): return .unavailable(failure)
        case .reply(let reply, let server):
            if reply.kind == .null { return .reused }
            if reply.isOK { return outcome(of: claim, server: server) }
            guard let code = reply.errorCode else { return .unavailable(.protocolError) }
            return code == "OOM" ? .full : .unavailable(StoreFailure(redisError: code))
        }
    }

    func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool {
        if isReleaseDenied { return false }
        let purpose = RedisRequest.Purpose.release(nonce: nonce)
        guard case .reply(let reply, _) = await perform(purpose, of: claim, waiter, deadline)
        else { return false }
        if reply.errorCode == "NOPERM" { isReleaseDenied = true }
        return reply.kind == .integer && reply.integer == 1
    }

    func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome?
    {
        guard case .reply(let reply, _) = await perform(.inspect, of: claim, waiter, deadline)
        else { return nil }
        switch reply.kind {
        case .string: return .reused
        case .null: return isOlderThanMemory(claim) ? .predates : .claimed
        case .status, .error, .integer, .array: return nil
        }
    }

    func warmUp(waiter: Waiter, until deadline: MonotonicInstant) async {
        switch route {
        case .server(let node): await node.settle(waiter: waiter, until: deadline)
        case .cluster(let cluster):
            if !cluster.hasLooked { await cluster.look(waiter: waiter, until: deadline) }
            for node in cluster.masters { await node.settle(waiter: waiter, until: deadline) }
        }
    }

    func close() {
        switch route {
        case .server(let node): node.close()
        case .cluster(let cluster): cluster.close()
        }
    }

    // MARK: Claims

    private func outcome(of claim: Claim, server: Int64) -> ClaimOutcome {
        // The server's clock may have leapt since the claim was sent.
        if context.ends.mayBeForgotten(
            retainedUntil: claim.retainedUntil, server: server, at: loop.now)
        {
            return .expired
        }
        return isOlderThanMemory(claim) ? .predates : .claimed
    }

    private func isOlderThanMemory(_ claim: Claim) -> Bool {
        claim.issuedAt < context.memory.reliableSince(wall: claim.at.wallSeconds, at: loop.now)
    }

    // MARK: Requests

    /// Sends a request to the server that has the key, and follows where it is sent on to. Never
    /// sends again what may have been executed.
    private func perform(
        _ purpose: RedisRequest.Purpose, of claim: Claim, _ waiter: Waiter,
        _ deadline: MonotonicInstant
    ) async -> RedisAnswer {
        let key = context.keys.key(of: claim.key)
        guard var node = await node(for: key, waiter, deadline) else {
            return .failure(searchFailure)
        }
        var isAsking = false
        let isPatient = context.patience.isGranted(until: deadline, at: loop.now)
        for _ in 0...Self.redirectionLimit {
            let admission = node.breaker.admit(at: loop.now)
            if admission == .refuse { return .failure(.breakerOpen) }
            let request = RedisRequest(
                purpose, key: key, isAsking: isAsking, made: loop.now, waiter: waiter)
            node.submit(request)
            guard let answer = await request.wait(until: deadline) else {
                node.breaker.note(timeoutAfterPatience: isPatient, admission, at: loop.now)
                return .failure(.timeout)
            }
            node.breaker.note(answer, admission, at: loop.now)
            guard case .reply(let reply, _) = answer, case .cluster(let cluster) = route,
                case .fixed(let asked) = node.locator
            else { return answer }
            if reply.errorCode == "CLUSTERDOWN" { cluster.refresh() }
            guard let redirection = RedisRedirection(reply, from: asked) else { return answer }
            let next: RedisNode?
            switch redirection {
            case .moved(let address):
                cluster.refresh()
                next = await find(address, in: cluster, waiter, deadline)
                isAsking = false
            case .ask(let address):
                next = await find(address, in: cluster, waiter, deadline)
                isAsking = true
            }
            guard let next else { return .failure(.protocolError) }
            node = next
        }
        return .failure(.protocolError)
    }

    private func node(
        for key: [UInt8], _ waiter: Waiter, _ deadline: MonotonicInstant
    ) async -> RedisNode? {
        switch route {
        case .server(let node): return node
        case .cluster(let cluster):
            let slot = RedisSlot.slot(of: key)
            if let node = cluster.node(for: slot) { return node }
            if !cluster.hasLooked { await cluster.look(waiter: waiter, until: deadline) }
            cluster.refresh()
            return cluster.node(for: slot)
        }
    }

    /// A master that another one named. One that we have not heard of gets a look at the cluster.
    private func find(
        _ address: RedisAddress, in cluster: RedisCluster, _ waiter: Waiter,
        _ deadline: MonotonicInstant
    ) async -> RedisNode? {
        if let node = cluster.node(at: address) { return node }
        await cluster.look(waiter: waiter, until: deadline)
        return cluster.node(at: address)
    }

    /// Why no node was found.
    private var searchFailure: StoreFailure {
        guard case .cluster(let cluster) = route else { return .unreachable }
        if !cluster.hasLooked { return .timeout }
        return cluster.failure?.kind ?? .protocolError
    }
}

extension CircuitBreaker {
    /// Nothing came in time.
    fileprivate func note(
        timeoutAfterPatience isPatient: Bool, _ admission: Admission, at now: MonotonicInstant
    ) {
        isPatient ? failed(admission, at: now) : forfeited(admission)
    }

    /// Learns from what became of a request.
    fileprivate func note(
        _ answer: RedisAnswer, _ admission: Admission, at now: MonotonicInstant
    ) {
        switch answer {
        case .reply(let reply, _):
            guard let code = reply.errorCode, code != "MOVED", code != "ASK", code != "OOM" else {
                return succeeded(admission)
            }
            if StoreFailure(redisError: code) == .denied { return forfeited(admission) }
            failed(admission, at: now)
        case .forgotten: forfeited(admission)
        case .failure(let failure):
            switch failure {
            case .timeout, .unreachable, .disconnected, .tls, .protocolError:
                failed(admission, at: now)
            // These cost no time, and say more than an open breaker would.
            case .denied, .evicting, .overloaded, .breakerOpen, .system: forfeited(admission)
            }
        }
    }
}
