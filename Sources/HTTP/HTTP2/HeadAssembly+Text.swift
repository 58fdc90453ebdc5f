package import Reactor

/// The text of a head, once its header block is complete.
extension HeadAssembly {
    /// Writes the head of a request. One for a WebSocket becomes the handshake of HTTP/1.1, with a
    /// key of our own, so that it is judged, and answered, as that is.
    ///
    /// - Returns: false when the request is malformed (RFC 9113, section 8.1.1).
    package func writeRequest(into text: ByteBuffer) -> Bool {
        if isMalformed || method.isEmpty || pseudoFields.contains(.status) { return false }
        if isTunnel { return isHandshake && writeHandshake(into: text) }
        if !hasAuthority && !hasHost { return false }
        let isConnect = isKept(method, "CONNECT")
        if isConnect {
            // RFC 9113, section 8.5.
            if !hasAuthority || !pseudoFields.isDisjoint(with: [.scheme, .path]) { return false }
        } else if !hasScheme || path.isEmpty || !isOriginForm {
            return false
        }
        if hasHost && hasAuthority && !isSameAuthority { return false }
        if !hasAuthority { authority = host }
        let special = special
        let values = special.bytes
        text.reserve(values.count + lines.count + 64)
        text.append(values.slice(method))
        text.append(0x20)
        text.append(values.slice(isConnect ? authority : path))
        text.append(" HTTP/1.1\r\n")
        writeCommonFields(into: text)
        finish(text)
        return true
    }

    /// RFC 8441, section 4: scheme, path and authority are there, unlike in a plain CONNECT.
    private var isHandshake: Bool {
        isWebSocket && isKept(method, "CONNECT") && hasScheme && hasAuthority
            && isPathAbsolute && (!hasHost || isSameAuthority)
    }

    private func writeHandshake(into text: ByteBuffer) -> Bool {
        let special = special
        text.append("GET ")
        text.append(special.bytes.slice(path))
        text.append(" HTTP/1.1\r\n")
        writeCommonFields(into: text)
        text.append("Connection: Upgrade\r\nUpgrade: websocket\r\n")
        text.appendField("Sec-WebSocket-Key", WebSocketHandshake.makeKey().span)
        finish(text)
        return true
    }

    private func writeCommonFields(into text: ByteBuffer) {
        let (special, cookie) = (special, cookie)
        if hasAuthority || hasHost {
            text.appendField("Host", special.bytes.slice(authority))
        }
        if !cookie.isEmpty { text.appendField("Cookie", cookie.span) }
    }

    /// Writes the head of a response. A success that answers the handshake with `key` becomes the
    /// 101 of HTTP/1.1 with the proof that goes with it, so that it opens a WebSocket as that does.
    ///
    /// - Parameter key: Of an extended CONNECT of ours (RFC 8441, section 5).
    /// - Returns: false when the response is malformed.
    package func writeResponse(into text: ByteBuffer, to key: [UInt8]? = nil) -> Bool {
        // 101 belongs to another protocol (RFC 9113, section 8.6).
        if isMalformed || pseudoFields != .status || status.count != 3 || isKept(status, "101") {
            return false
        }
        // RFC 9110, section 8.6.
        if isInterim && contentLength != nil { return false }
        let special = special
        if special.bytes.slice(status).decimalValue == nil { return false }
        text.reserve(lines.count + 64)
        if let key, isSuccess {
            text.append("HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
            text.appendField(
                "Sec-WebSocket-Accept", WebSocketHandshake.accept(of: key.span).span)
            finish(text)
            return true
        }
        text.append("HTTP/1.1 ")
        text.append(special.bytes.slice(status))
        text.append(" \r\n")
        finish(text)
        return true
    }

    /// RFC 9113, section 8.3.1: where both are there, they say the same.
    private var isSameAuthority: Bool {
        let special = special
        return special.bytes.slice(host).equalsIgnoringCase(special.bytes.slice(authority))
    }

    private var isPathAbsolute: Bool {
        let special = special
        return !path.isEmpty && special.bytes[Int(path.start)] == UInt8(ascii: "/")
    }

    /// A path, or `*` for OPTIONS; an absolute target could name another host than `:authority`.
    private var isOriginForm: Bool {
        isPathAbsolute || isKept(path, "*") && isKept(method, "OPTIONS")
    }

    private func finish(_ text: ByteBuffer) {
        let lines = lines
        text.append(lines.bytes)
        if isTooLong {
            // Longer than what the parser allows, as the block was.
            let filler = [UInt8](repeating: UInt8(ascii: "x"), count: 1024)
            var length = 0
            while length <= limits.bytes {
                text.appendField("x", filler.span)
                length += filler.count
            }
        }
        text.appendLineEnd()
    }
}
