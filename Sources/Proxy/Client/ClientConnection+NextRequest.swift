internal import HTTP
internal import Reactor

/// Waiting for the first bytes of a request, and for what a new connection speaks.
extension ClientConnection {
    /// How long a task waits for the next request before it ends.
    private static let taskIdleNanoseconds: Int64 = 100_000_000

    /// What comes next on a connection.
    enum Next {
        /// The first bytes of a request are in its buffer.
        case exchange(Exchange)
        /// Nothing came for a while.
        case nothing
        /// The connection begins as HTTP/2 does; its bytes so far are in the buffer.
        case http2(Exchange)
        case end
    }

    /// Waits for the first bytes of a request.
    func next() async -> Next {
        if let exchange = leftover {
            leftover = nil
            if !isDismissed { return .exchange(exchange) }
            // Pipelined requests that were not begun are the client's to repeat (RFC 9112, 9.3.2).
            state.giveBack(exchange)
            return .end
        }
        // It stays what it is until the request is served.
        let transport = transport
        let patience = state.loop.now.advanced(byNanoseconds: Self.taskIdleNanoseconds)
        var reason = WakeReason.ready
        while !isAborted {
            // TLS may have something to say that is no request: a ticket, a new key.
            if session != nil && !transport.carriesOneMessage { _ = try? transport.flush() }
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
}
