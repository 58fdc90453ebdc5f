internal import Attestation
internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor
internal import TLS

/// The head that goes upstream.
extension Exchange {
    /// Writes it: the client's fields but for what must not pass, then our own. What the client
    /// sent under one of our names is gone before ours are added (pitfalls H3, H4).
    func writeRequestHead(_ client: ClientConnection, _ permit: Permit, _ route: ServedRoute) {
        let input = self.input
        let bytes = input.pinnedBytes
        let out = upstreamOutput
        out.append(bytes.slice(head.methodName))
        out.append(" ")
        if head.target.form == .asterisk {
            out.append("*")
        } else if head.target.isRewritten {
            out.append(head.target.rewritten)
        } else {
            out.append(bytes.slice(head.target.path))
        }
        if head.target.hasQuery {
            out.append("?")
            out.append(bytes.slice(head.target.query))
        }
        out.append(" HTTP/1.1\r\n")
        writeHost(out)
        head.fields.copy(from: bytes, to: out) { isKept($0, client, route) }
        writeFraming(out)
        if head.wantsWebSocket { writeHandshake(route, bytes, out) }
        writeVerdict(permit, out)
        writeForwarding(client, route, bytes, out)
        out.append("\r\n")
    }

    /// RFC 9112, section 3.2.2: the authority of an absolute-form target replaces Host; both are
    /// equal here, or the parser had refused them.
    private func writeHost(_ out: ByteBuffer) {
        out.append("Host: ")
        writeAuthority(out)
        out.append("\r\n")
    }

    /// The authority that the request is for, as it is forwarded.
    func writeAuthority(_ out: ByteBuffer) {
        out.append(head.target.host)
        if let port = head.target.port {
            out.append(":")
            out.append(decimal: UInt64(port))
        }
    }

    private func isKept(_ line: FieldLine, _ client: ClientConnection, _ route: ServedRoute) -> Bool
    {
        if line.isHopByHop { return false }
        switch line.known {
        case .other: return true
        case .host, .contentLength, .transferEncoding, .reserved, .requestID, .via, .expect:
            return false
        case .forwardedFor, .forwardedProto, .forwardedHost, .forwarded: return false
        case .forwardedOther: return client.peer.isTrusted
        case .appCheckToken: return route.forwardsToken
        case .traceparent, .tracestate: return record.trace == nil
        case .webSocketProtocol, .webSocketAccept: return false
        case .webSocketKey, .webSocketOther: return head.wantsWebSocket
        default: return true
        }
    }

    private func writeFraming(_ out: ByteBuffer) {
        switch head.framing {
        case .chunked, .untilClose: out.append("Transfer-Encoding: chunked\r\n")
        case .length(let length):
            out.append("Content-Length: ")
            out.append(decimal: length)
            out.append("\r\n")
        case .none:
            if head.fields.contains(.contentLength) { out.append("Content-Length: 0\r\n") }
        }
        if head.expectsContinue { out.append("Expect: 100-continue\r\n") }
        if head.acceptsTrailers && !head.wantsWebSocket {
            out.append("TE: trailers\r\nConnection: TE\r\n")
        }
    }

    private func writeVerdict(_ permit: Permit, _ out: ByteBuffer) {
        guard let verdict = record.verdict else { return }
        out.append("X-AppCheck-Verdict: ")
        out.append(verdict.word)
        if let reason = verdict.reason {
            out.append("\r\nX-AppCheck-Reason: ")
            out.append(reason)
        }
        if let token = record.token {
            if let app = token.app {
                out.append("\r\nX-AppCheck-App: ")
                out.append(serving.projects[token.project].apps[app].alias)
            }
            out.append("\r\nX-AppCheck-App-Id: ")
            out.append(token.appID)
        }
        out.append("\r\nX-AppCheck-Action: ")
        out.append(permit.action.rawValue)
        out.append("\r\n")
    }

    /// X-Request-Id, who it is forwarded for, and Via.
    private func writeForwarding(
        _ client: ClientConnection, _ route: ServedRoute, _ bytes: Span<UInt8>, _ out: ByteBuffer
    ) {
        out.append("X-Request-Id: ")
        out.append(record.requestID)
        out.append("\r\n")
        writeForwardingFields(client, bytes, out)
        if let trace = record.trace { writeTrace(trace, bytes, out) }
        if route.sendsForwarded { writeForwarded(client, bytes, out) }
        if let certificate = client.session?.client {
            out.append("X-Client-Cert-Subject: ")
            out.append(certificate.subject)
            out.append("\r\nX-Client-Cert-Fingerprint: ")
            out.append(certificate.fingerprint)
            out.append("\r\n")
        }
        for line in head.fields.lines where line.known == .via && !line.isHopByHop {
            out.append("Via: ")
            out.append(bytes.slice(line.value))
            out.append("\r\n")
        }
        out.append("Via: ")
        if client.transport.carriesOneMessage {
            out.append("2.0")
        } else {
            out.append(head.version == .http10 ? "1.0" : "1.1")
        }
        out.append(" portcullis\r\n")
    }
}
