internal import Configuration
internal import Policy
internal import Reactor
internal import TLS

/// What comes before everything else where `proxy_protocol` is on.
extension ClientConnection {
    /// Reads the PROXY header (pitfall O4), for which a balancer has as long as for the head of a
    /// request; a TLS handshake behind it shares that time.
    ///
    /// - Returns: false when there is nothing to serve.
    func readProxyHeader() async -> Bool {
        let result: ProxyHeaderResult
        switch await takeProxyHeader() {
        case .success(let header):
            result = ProxyHeaderResult(header.origin)
            guard adopt(header) else {
                refuseNamedClient()
                return false
            }
        case .failure(let refusal): result = refusal.result
        }
        state.recorder.connection(.proxyHeader(result), listener: listener.name)
        if result.isServed { return true }
        state.noteRefusedHeader(result, from: peer.host, listener: listener.name)
        return false
    }

    /// Nobody was asked about the client when the load balancer's connection was accepted.
    private func refuseNamedClient() {
        let limit = Limit.connectionsPerNetwork
        state.recorder.connection(.limited(limit), listener: listener.name)
        state.notices.note(
            limit, "a connection was turned away", listener: listener.name, client: peer.host,
            now: state.loop.now, log: state.log)
    }

    private struct Refusal: Error {
        let result: ProxyHeaderResult

        init(_ result: ProxyHeaderResult) {
            self.result = result
        }
    }

    private func takeProxyHeader() async -> Result<ProxyHeader, Refusal> {
        // Not a byte is read of strangers: whatever they say about their address is a lie.
        guard peer.isTrusted else { return .failure(Refusal(.untrusted)) }
        guard let socket = (transport as? TLSTransport)?.socket ?? transport as? Socket else {
            return .failure(Refusal(.closed))
        }
        let deadline = idleSince.advanced(byNanoseconds: listener.headerNanoseconds)
        let scratch = state.scratch
        while !isAborted && !isDismissed && !state.isDraining {
            scratch.removeAll()
            switch try? socket.peek(into: scratch, limit: ProxyHeader.longest) {
            case .bytes:
                do throws(ProxyHeaderError) {
                    if let header = try ProxyHeader.parse(scratch.bytes) {
                        guard (try? socket.discard(header.length, scratch: scratch)) != nil else {
                            return .failure(Refusal(.closed))
                        }
                        return .success(header)
                    }
                } catch {
                    return .failure(Refusal(ProxyHeaderResult(error)))
                }
                if socket.isPeerClosed { return .failure(Refusal(.closed)) }
            case .wouldBlock: break
            case .endOfStream, nil: return .failure(Refusal(.closed))
            }
            if await waiter.wait(until: deadline) == .timedOut {
                return .failure(Refusal(.timedOut))
            }
        }
        return .failure(Refusal(.closed))
    }
}
