internal import HTTP
internal import Policy
internal import Reactor

/// The handshake of a WebSocket (RFC 6455, section 4): a request like any other, but for its token,
/// which may be one of the subprotocols, and for what a proxy must otherwise not pass on.
extension Exchange {
    /// Finds tokens among the subprotocols; the first one is in `protocolToken` then.
    ///
    /// - Returns: how many there are.
    func locateProtocolTokens() -> Int {
        let input = self.input
        let bytes = input.pinnedBytes
        var count = 0
        for line in head.fields.lines where line.known == .webSocketProtocol {
            let value = bytes.slice(line.value)
            var list = SubprotocolList()
            while let entry = list.next(in: value) {
                guard let token = entry.token else { continue }
                count += 1
                if count > 1 { continue }
                protocolToken = ByteRange(
                    start: Int(line.value.start) + token.lowerBound, count: token.count)
            }
        }
        return count
    }

    /// Writes the fields of the handshake that are about the connection, and what is left of the
    /// subprotocols. A backend that gets tokens gets this one where it gets them all.
    func writeHandshake(_ route: ServedRoute, _ bytes: Span<UInt8>, _ out: ByteBuffer) {
        out.append("Connection: Upgrade\r\nUpgrade: websocket\r\n")
        // Where they are no tokens for us, a backend that may see tokens may want them for itself.
        let keepsTokens = route.forwardsToken && !route.takesProtocolTokens
        var isFirst = true
        for line in head.fields.lines where line.known == .webSocketProtocol {
            let value = bytes.slice(line.value)
            var list = SubprotocolList()
            while let entry = list.next(in: value) {
                if entry.token != nil && !keepsTokens { continue }
                out.append(isFirst ? "Sec-WebSocket-Protocol: " : ", ")
                isFirst = false
                out.append(value.extracting(entry.range))
            }
        }
        if !isFirst { out.append("\r\n") }
        if let protocolToken, route.forwardsToken {
            out.append("X-Firebase-AppCheck: ")
            out.append(bytes.slice(protocolToken))
            out.append("\r\n")
        }
    }

    /// Waits until a server whose connections are shared has said whether it takes WebSockets (RFC
    /// 8441, section 3), as a client must before it asks for one. Those of HTTP/1.1 say it with their
    /// answer.
    ///
    /// - Returns: nil when the handshake may be sent. Nothing was sent otherwise.
    func offerOfWebSocket(
        _ client: ClientConnection, _ lease: UpstreamLease, _ pool: UpstreamPool
    ) async -> ForwardingFailure? {
        guard let stream = lease.transport as? HTTP2Stream else { return nil }
        let deadline = state.loop.now.advanced(byNanoseconds: pool.connectNanoseconds)
        while true {
            if let takes = stream.takesWebSocket {
                return takes ? nil : ForwardingFailure(reason: .webSocketNotSupported)
            }
            pool.awaitGreeting(lease.server, client.waiter)
            switch await client.waitUnlessGone(until: deadline) {
            case .ready: continue
            case .timedOut: return ForwardingFailure(reason: .upstreamConnectTimeout)
            case nil: return ForwardingFailure(reason: .clientAborted)
            }
        }
    }

    /// Whether the server's 101 answers this very handshake.
    var isHandshakeAnswered: Bool {
        guard head.wantsWebSocket, let key = head.fields.first(.webSocketKey) else { return false }
        let (input, upstreamInput) = (input, upstreamInput)
        return answer.opensWebSocket(
            upstreamInput.bytes, key: input.pinnedBytes.slice(key.value))
    }
}
