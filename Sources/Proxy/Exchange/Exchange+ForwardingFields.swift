internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// What a trusted proxy's `Forwarded` says.
struct ForwardedChain {
    /// All of it.
    let field: ForwardedField
    /// The element that tells of the client: the rightmost whose address is no trusted proxy's. What
    /// stands before it, anybody may have written.
    let believed: Int
}

/// Who a request is forwarded for: what trusted proxies say about it, and what backends are told.
extension Exchange {
    /// The client's address by the fields that the listener's trusted proxies write; nil when they
    /// do not say.
    func forwardedClient(_ client: ClientConnection, _ bytes: Span<UInt8>) -> IPAddress? {
        switch client.listener.listener.forwardingFields {
        case .xForwarded: clientOfXForwardedFor(client, bytes)
        case .forwarded: clientOfForwarded(client, bytes)
        }
    }

    /// The rightmost address of X-Forwarded-For that is not itself a trusted proxy.
    private func clientOfXForwardedFor(_ client: ClientConnection, _ bytes: Span<UInt8>)
        -> IPAddress?
    {
        var found: IPAddress?
        for line in head.fields.lines.reversed() where line.known == .forwardedFor {
            let value = bytes.slice(line.value)
            var end = value.count
            while end > 0 {
                var start = end
                while start > 0 && value[start - 1] != UInt8(ascii: ",") { start -= 1 }
                // An entry that is no address ends the chain of what can be believed.
                guard case .address(let address)? = node(value.extracting(start..<end)) else {
                    return found
                }
                found = address
                if !client.listener.isTrusted(address) { return found }
                end = start - 1
            }
        }
        return found
    }

    private func clientOfForwarded(_ client: ClientConnection, _ bytes: Span<UInt8>) -> IPAddress? {
        var field = ForwardedField()
        do throws(ForwardedField.Malformed) {
            for line in head.fields.lines where line.known == .forwarded {
                try field.append(line: bytes.slice(line.value))
            }
        } catch {
            record.isForwardedMalformed = true
            return nil
        }
        guard !field.elements.isEmpty else { return nil }
        var found: IPAddress?
        var believed = field.elements.count - 1
        for (index, element) in field.elements.enumerated().reversed() {
            believed = index
            guard case .address(let address)? = element.node else { break }
            found = address
            if !client.listener.isTrusted(address) { break }
        }
        forwarded = ForwardedChain(field: field, believed: believed)
        return found
    }

    // MARK: Towards the backend

    /// X-Forwarded-For, -Proto and -Host. What a trusted proxy says in the fields that it writes is
    /// continued; anybody else's word is replaced.
    func writeForwardingFields(_ client: ClientConnection, _ bytes: Span<UInt8>, _ out: ByteBuffer)
    {
        let isContinued =
            client.peer.isTrusted
            && client.listener.listener.forwardingFields == .xForwarded
        out.append("X-Forwarded-For: ")
        var isFirst = true
        if isContinued {
            for line in head.fields.lines
            where line.known == .forwardedFor && !line.value.isEmpty {
                if !isFirst { out.append(", ") }
                out.append(bytes.slice(line.value))
                isFirst = false
            }
        } else if let forwarded {
            for element in forwarded.field.elements {
                if !isFirst { out.append(", ") }
                writeAddress(of: element, out)
                isFirst = false
            }
        }
        // A peer without an address would only hide the last one that is known.
        if isFirst || client.peer.address != nil {
            if !isFirst { out.append(", ") }
            out.append(client.peer.host)
        }
        let believed = forwarded.map { $0.field.elements[$0.believed] }
        out.append("\r\nX-Forwarded-Proto: ")
        if isContinued, let line = head.fields.first(.forwardedProto) {
            out.append(bytes.slice(line.value))
        } else if let scheme = believed?.scheme, !scheme.isEmpty {
            out.append(scheme)
        } else {
            writeScheme(client, out)
        }
        out.append("\r\nX-Forwarded-Host: ")
        if isContinued, let line = head.fields.first(.forwardedHost) {
            out.append(bytes.slice(line.value))
        } else if let host = believed?.host, !host.isEmpty {
            out.append(host)
        } else {
            writeAuthority(out)
        }
        out.append("\r\n")
    }

    /// `Forwarded` (RFC 7239): what a trusted proxy says, in whichever fields, and then our element.
    func writeForwarded(_ client: ClientConnection, _ bytes: Span<UInt8>, _ out: ByteBuffer) {
        out.append("Forwarded: ")
        if forwarded != nil {
            for line in head.fields.lines where line.known == .forwarded && !line.value.isEmpty {
                out.append(bytes.slice(line.value))
                out.append(", ")
            }
        } else if client.peer.isTrusted
            && client.listener.listener.forwardingFields == .xForwarded
        {
            writeXForwardedAsForwarded(bytes, out)
        }
        out.append("for=")
        if let address = client.peer.address {
            writeNode(address, out)
        } else {
            out.append("unknown")
        }
        if !head.target.host.isEmpty {
            out.append(";host=\"")
            writeAuthority(out)
            out.append("\"")
        }
        out.append(";proto=")
        writeScheme(client, out)
        out.append("\r\n")
    }

    /// The entries of X-Forwarded-For as elements (RFC 7239, section 7.4). Scheme and host are the
    /// last proxy's word about who connected to it.
    private func writeXForwardedAsForwarded(_ bytes: Span<UInt8>, _ out: ByteBuffer) {
        var hasElement = false
        for line in head.fields.lines where line.known == .forwardedFor {
            let value = bytes.slice(line.value)
            var start = 0
            while start < value.count {
                var end = start
                while end < value.count && value[end] != UInt8(ascii: ",") { end += 1 }
                if hasElement { out.append(", ") }
                out.append("for=")
                if case .address(let address)? = node(value.extracting(start..<end)) {
                    writeNode(address, out)
                } else {
                    out.append("unknown")
                }
                hasElement = true
                start = end + 1
            }
        }
        guard hasElement else { return }
        if let line = head.fields.first(.forwardedHost) {
            let host = bytes.slice(line.value)
            if ForwardedField.isHost(host) {
                out.append(";host=\"")
                out.append(host)
                out.append("\"")
            }
        }
        if let line = head.fields.first(.forwardedProto) {
            let scheme = bytes.slice(line.value)
            if ForwardedField.isScheme(scheme) {
                out.append(";proto=")
                out.append(scheme)
            }
        }
        out.append(", ")
    }

    private func writeScheme(_ client: ClientConnection, _ out: ByteBuffer) {
        if client.isEncrypted { out.append("https") } else { out.append("http") }
    }

    private func writeAddress(of element: ForwardedField.Element, _ out: ByteBuffer) {
        guard case .address(let address)? = element.node else { return out.append("unknown") }
        var text: [UInt8] = []
        address.appendText(to: &text)
        out.append(text)
    }

    private func writeNode(_ address: IPAddress, _ out: ByteBuffer) {
        var text: [UInt8] = []
        address.appendText(to: &text)
        if address.isIPv4 { return out.append(text) }
        out.append("\"[")
        out.append(text)
        out.append("]\"")
    }

    /// An entry of X-Forwarded-For, with white space around it.
    private func node(_ entry: Span<UInt8>) -> ForwardedNode? {
        var start = 0
        var end = entry.count
        while start < end, entry[start] == 0x20 || entry[start] == 0x09 { start += 1 }
        while end > start, entry[end - 1] == 0x20 || entry[end - 1] == 0x09 { end -= 1 }
        return ForwardedNode(text: entry.extracting(start..<end))
    }
}
