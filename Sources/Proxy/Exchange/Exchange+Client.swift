internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor
internal import TLS

/// Who is asking: the client's address and the request's id.
extension Exchange {
    /// The connection was made for a host that has another certificate than the request's: what the
    /// client checked then says nothing about this host (pitfall P7; RFC 9110, section 15.5.20).
    /// Hosts with one certificate may share a connection.
    func isMisdirected(_ client: ClientConnection) -> Bool {
        guard let session = client.session, let server = client.listener.tls,
            !session.serverName.isEmpty, session.serverName != head.target.host
        else { return false }
        return server.certificate(for: head.target.host) !== session.certificate
    }

    /// Believes forwarding fields only when the peer is a trusted proxy (pitfall H6).
    func identify(_ client: ClientConnection) {
        guard client.peer.isTrusted else { return }
        let input = self.input
        let bytes = input.pinnedBytes
        if let address = forwardedClient(client, bytes) {
            clientAddress = address
            record.peerAddress = client.peer.balancerHost ?? client.peer.host
            record.clientAddress = address.description
        }
        if let line = head.fields.first(.requestID) {
            let value = bytes.slice(line.value)
            if isRequestID(value) {
                record.requestID.removeAll(keepingCapacity: true)
                record.requestID.append(value)
            }
        }
    }

    /// 1 to 128 characters that need no escaping anywhere.
    private func isRequestID(_ value: Span<UInt8>) -> Bool {
        if value.isEmpty || value.count > 128 { return false }
        for index in value.indices {
            switch value[index] {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                UInt8(ascii: "."):
                continue
            default: return false
            }
        }
        return true
    }
}
