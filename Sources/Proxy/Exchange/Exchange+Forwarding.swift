internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor
internal import TLS

/// A connection to an upstream server, lent to one exchange.
struct UpstreamLease {
    /// Connected, or believed to be.
    let transport: any Transport
    /// Index of the server in its pool.
    let server: Int
    /// It lay idle in the pool before: the server may have closed it meanwhile.
    let isReused: Bool
}

/// The way to the upstream and back.
extension Exchange {
    /// Forwards the request and relays the answer. Needs policy's permit.
    func forward(_ client: ClientConnection, _ permit: Permit, _ route: ServedRoute) async -> Fate {
        record.upstream = route.upstream
        let pool = pools[route.upstream]
        let begun = MonotonicInstant.now
        if record.trace != nil { noteUpstreamStart(begun) }
        defer {
            record.upstreamMicroseconds =
                MonotonicInstant.now.microseconds(since: begun) - record.tunnelMicroseconds
        }
        var end: Result<Fate, ForwardingFailure>
        // No server can have acted upon the request.
        var isUntouched = true
        var attempts = ForwardingAttempts()
        pool.budget.requested(at: state.loop.now)
        while true {
            upstreamOutput.removeAll()
            writeRequestHead(client, permit, route)
            var upload = BodyRelay(
                incoming: BodyRelay.framing(head.framing, from: client.transport),
                outgoing: pool.framing(for: head.framing),
                limit: client.listener.bodyLimit)
            end = await relay(client, pool, &upload, &attempts)
            guard case .failure(let failure) = end else {
                isUntouched = isUntouched && !upload.hasSunk
                break
            }
            isUntouched = isUntouched && (failure.isRefused || !upload.hasSunk)
            if client.isAborted || !maySendAgain(failure, pool, &attempts) { break }
        }
        if attempts.retries > 0 { record.trace?.resendCount = attempts.retries }
        if isUntouched { await release(client) }
        switch end {
        case .success(let fate): return fate
        case .failure(let failure): return await fail(client, failure.reason)
        }
    }

    /// Has the request answered by one of the servers.
    // A frame of its own for each of these would cost every request an allocation by the runtime.
    @inline(__always)
    private func relay(
        _ client: ClientConnection, _ pool: UpstreamPool, _ upload: inout BodyRelay,
        _ attempts: inout ForwardingAttempts
    ) async -> Result<Fate, ForwardingFailure> {
        while true {
            let lease: UpstreamLease
            let (index, idle) = chooseIdle(pool, attempts)
            if let idle {
                lease = idle
                record.upstreamServer = pool.servers[idle.server].label
            } else {
                switch await connect(client, pool, &attempts, first: index) {
                case .success(let connected): lease = connected
                case .failure(let failure): return .failure(failure)
                }
            }
            if head.wantsWebSocket, let failure = await offerOfWebSocket(client, lease, pool) {
                pool.release(lease.server)
                lease.transport.close()
                return .failure(failure)
            }
            lease.transport.waiter = client.waiter
            let end = await transact(client, lease.transport, pool, &upload)
            record.bytesIn = max(record.bytesIn, upload.contentBytes)
            pool.release(lease.server)
            note(end, lease, pool)
            switch end {
            case .answered(let fate, let isReusable):
                if isReusable {
                    pool.keep(lease.transport, lease.server, now: state.loop.now)
                } else {
                    lease.transport.close()
                }
                return .success(fate)
            case .nothingSent:
                lease.transport.close()
                // A pooled connection that the server had closed: nothing left this machine, so
                // another one may carry the request. A fresh one that fails is the server's fault.
                if lease.isReused { continue }
                return .failure(ForwardingFailure(reason: .upstreamReset))
            case .unanswered:
                lease.transport.close()
                attempts.failure = .upstreamReset
                // Another one, where there is another.
                attempts.mark(lease.server, isUseless: pool.servers.count > 1)
                return .failure(ForwardingFailure(reason: .upstreamReset, isUnanswered: true))
            case .refused:
                lease.transport.close()
                attempts.failure = .upstreamReset
                attempts.mark(lease.server, isUseless: false)
                return .failure(ForwardingFailure(reason: .upstreamReset, isRefused: true))
            case .failed(let failure):
                lease.transport.close()
                return .failure(ForwardingFailure(reason: failure))
            }
        }
    }

    // MARK: Connecting

    /// No byte of a final answer has gone to the client.
    struct ForwardingFailure: Error {
        /// The last server's failure, where several were tried.
        let reason: RequestFailure
        /// In words, for the log.
        var detail: String?
        /// The server said that it did nothing with the request (RFC 9113, section 8.7).
        var isRefused = false
        /// Of the answer no byte came, although something was sent.
        var isUnanswered = false
    }

    /// What most requests find: nobody waits before them, and a connection of the server that is
    /// chosen lies idle.
    ///
    /// - Returns: the server, if one was chosen, and a connection to it, if there is one.
    private func chooseIdle(_ pool: UpstreamPool, _ attempts: ForwardingAttempts)
        -> (Int?, UpstreamLease?)
    {
        if pool.line.isOccupied || attempts.tried != 0 { return (nil, nil) }
        guard let index = choose(pool, tried: 0) else { return (nil, nil) }
        guard let socket = pool.takeIdle(index, now: state.loop.now) else { return (index, nil) }
        return (index, UpstreamLease(transport: socket, server: index, isReused: true))
    }

    /// - Parameter first: A server that was chosen already, and has no idle connection.
    private func connect(
        _ client: ClientConnection, _ pool: UpstreamPool, _ attempts: inout ForwardingAttempts,
        first: Int?
    ) async -> Result<UpstreamLease, ForwardingFailure> {
        if pool.servers.isEmpty { return .failure(ForwardingFailure(reason: .upstreamUnresolved)) }
        var failed: ForwardingFailure?
        let limit = state.loop.now.advanced(byNanoseconds: pool.queueNanoseconds)
        if pool.line.isOccupied, attempts.retries == 0,
            let failure = await awaitTurn(client, pool, until: limit)
        {
            return .failure(failure)
        }
        var first = first
        while true {
            guard let index = first ?? choose(pool, tried: attempts.tried) else {
                if !pool.isFull { break }
                if let failure = await awaitTurn(client, pool, until: limit) {
                    return .failure(failure)
                }
                continue
            }
            first = nil
            if let failed, !mayMove(pool, &attempts) {
                pool.release(index)
                return .failure(failed)
            }
            failed = nil
            record.upstreamServer = pool.servers[index].label
            if let socket = pool.takeIdle(index, now: state.loop.now) {
                return .success(UpstreamLease(transport: socket, server: index, isReused: true))
            }
            if pool.joinConnecting(index, client.waiter) {
                pool.release(index)
                if let failure = await othersConnected(client, pool) { return .failure(failure) }
                continue
            }
            attempts.mark(index, isUseless: true)
            let opened = await open(client, pool, index)
            defer { pool.finishConnecting(index) }
            switch opened {
            case .success(let socket):
                noteConnection()
                if pool.isMultiplexed {
                    guard let stream = pool.share(socket, index, state) else {
                        pool.release(index)
                        return .failure(ForwardingFailure(reason: .upstreamConnect))
                    }
                    return .success(
                        UpstreamLease(transport: stream, server: index, isReused: false))
                }
                return .success(UpstreamLease(transport: socket, server: index, isReused: false))
            case .failure(let error):
                pool.release(index)
                // None of these says anything about the server.
                if error.reason == .clientAborted { return .failure(error) }
                if error.reason.isExhaustion {
                    noteExhaustion(error)
                    return .failure(error)
                }
                attempts.failure = error.reason
                failed = error
                pool.avoid(index, now: state.loop.now)
                note(error, pool, index)
                if index >= 64 { return .failure(error) }
            }
        }
        if let failed { return .failure(failed) }
        if attempts.tried == 0 {
            state.recorder.upstream(.unhealthy, pool.upstream.name)
            attempts.failure = .upstreamUnhealthy
        }
        return .failure(ForwardingFailure(reason: attempts.failure))
    }

    private func choose(_ pool: UpstreamPool, tried: UInt64) -> Int? {
        let index = pool.choose(tried: tried, now: state.loop.now, key: hashKey(pool))
        if pool.isPanicking { state.recorder.upstream(.panic, pool.upstream.name) }
        return index
    }

    /// Waits until a connection that another request opens is there, or is not.
    private func othersConnected(_ client: ClientConnection, _ pool: UpstreamPool) async
        -> ForwardingFailure?
    {
        let deadline = state.loop.now.advanced(byNanoseconds: pool.connectNanoseconds)
        return switch await client.waitUnlessGone(until: deadline) {
        case .ready: nil
        case .timedOut: ForwardingFailure(reason: .upstreamConnectTimeout)
        case nil: ForwardingFailure(reason: .clientAborted)
        }
    }

    private func open(_ client: ClientConnection, _ pool: UpstreamPool, _ index: Int) async
        -> Result<any Transport, ForwardingFailure>
    {
        let deadline = state.loop.now.advanced(byNanoseconds: pool.connectNanoseconds)
        let socket: Socket
        do throws(Errno) {
            socket = try connect(to: pool.servers[index].address)
        } catch {
            let reason = RequestFailure(ofConnecting: error)
            return .failure(ForwardingFailure(reason: reason, detail: error.description))
        }
        socket.waiter = client.waiter
        while true {
            switch socket.connectResult() {
            case .success:
                guard let context = pool.tls else { return .success(socket) }
                return await secure(socket, context, client, pool, index, until: deadline)
            case .failure(let error):
                socket.close()
                return .failure(
                    ForwardingFailure(reason: .upstreamConnect, detail: error.description))
            case nil: break
            }
            let reason = await client.waitUnlessGone(until: deadline)
            if reason == .ready { continue }
            socket.close()
            return .failure(
                ForwardingFailure(
                    reason: reason == nil ? .clientAborted : .upstreamConnectTimeout))
        }
    }

    /// Starts a connection; idle clients have to give up their descriptors for it when there are no
    /// others.
    private func connect(to address: SocketAddress) throws(Errno) -> Socket {
        do throws(Errno) {
            return try Socket.connect(to: address, loop: state.loop)
        } catch {
            guard error == .tooManyOpenFiles, state.makeRoom(of: nil) else { throw error }
            return try Socket.connect(to: address, loop: state.loop)
        }
    }

    /// Changes a connection over to TLS, until `deadline` at the latest.
    private func secure(
        _ socket: Socket, _ context: TLSContext, _ client: ClientConnection, _ pool: UpstreamPool,
        _ index: Int, until deadline: MonotonicInstant
    ) async -> Result<any Transport, ForwardingFailure> {
        do throws(TLSError) {
            let transport = TLSTransport(
                try TLSStream(
                    client: context, socket: socket, host: pool.upstream.tls?.name ?? "",
                    resumption: pool.servers[index].sessions, scratch: state.tlsScratch))
            while try !transport.handshake() {
                switch await client.waitUnlessGone(until: deadline) {
                case .ready: continue
                case .timedOut: throw .handshakeTimedOut
                case nil:
                    socket.close()
                    return .failure(ForwardingFailure(reason: .clientAborted))
                }
            }
            state.recorder.secured(
                upstream: pool.upstream.name, isResumed: transport.session?.isResumed == true)
            // A server without ALPN may still be meant to speak HTTP/1.1, but never HTTP/2.
            let agreed = transport.session?.alpn ?? []
            if pool.isMultiplexed && !agreed.elementsEqual("h2".utf8) {
                transport.close()
                return .failure(
                    ForwardingFailure(
                        reason: .upstreamTLS, detail: "the server does not speak h2 (ALPN)"))
            }
            return .success(transport)
        } catch {
            socket.close()
            let isLate = error.kind == .timedOut
            return .failure(
                ForwardingFailure(
                    reason: isLate ? .upstreamConnectTimeout : .upstreamTLS, detail: error.detail))
        }
    }
}
