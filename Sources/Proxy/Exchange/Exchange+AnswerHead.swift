internal import HTTP
internal import Reactor

/// The heads that go to the client.
extension Exchange {
    /// Writes the head of the upstream's final answer.
    ///
    /// - Parameter isBodyOutstanding: The request's body was not complete when the answer came, so
    ///   what follows on the connection is not the next request.
    /// - Returns: how the body is delimited on the way to the client.
    func writeAnswerHead(_ client: ClientConnection, isBodyOutstanding: Bool) -> BodyFraming {
        let framing = framing(for: client)
        willPersist =
            head.isPersistent && state.keepsConnections && !isBodyOutstanding
            && framing != .untilClose
        writeStatusLine()
        // The length of what a HEAD would have brought, or of what was not modified, is the
        // upstream's word.
        writeKeptFields(withLength: framing == .none)
        switch framing {
        case .length(let length): output.appendField("Content-Length", decimal: length)
        case .chunked: output.append("Transfer-Encoding: chunked\r\n")
        case .none, .untilClose: break
        }
        writePersistence()
        output.append("\r\n")
        return framing
    }

    /// Tells the client what becomes of the connection, where its version would not assume so.
    func writePersistence() {
        if !willPersist {
            output.append("Connection: close\r\n")
        } else if head.version == .http10 {
            output.append("Connection: keep-alive\r\n")
        }
    }

    /// Passes an interim answer on, except to clients that would not understand it, and a 100 that
    /// nobody waits for.
    func writeInterimHead() {
        if head.version == .http10 || answer.status == 100 && !head.expectsContinue { return }
        writeStatusLine()
        writeKeptFields(withLength: false)
        output.append("\r\n")
    }

    /// Writes the head that opens a WebSocket.
    func writeSwitchingHead() {
        willPersist = false
        writeStatusLine()
        output.append("Connection: Upgrade\r\nUpgrade: websocket\r\n")
        writeKeptFields(withLength: false)
        output.append("\r\n")
    }

    private func framing(for client: ClientConnection) -> BodyFraming {
        switch answer.framing {
        case .none, .length: answer.framing
        case .chunked, .untilClose:
            head.version == .http11 && !client.transport.carriesOneMessage ? .chunked : .untilClose
        }
    }

    private func writeStatusLine() {
        // HTTP/2 has none, and some clients of HTTP/1.1 want one.
        if answer.reason.isEmpty { return output.appendStatusLine(answer.status) }
        let upstreamInput = self.upstreamInput
        output.appendStatusLine(
            answer.status, reason: upstreamInput.bytes.slice(answer.reason))
    }

    private func writeKeptFields(withLength: Bool) {
        let upstreamInput = self.upstreamInput
        let bytes = upstreamInput.bytes
        answer.fields.copy(from: bytes, to: output) { line in
            !line.isHopByHop && line.known != .transferEncoding
                && (withLength || line.known != .contentLength)
        }
    }
}
