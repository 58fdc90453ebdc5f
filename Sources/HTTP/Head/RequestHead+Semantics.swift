extension RequestHead {
    /// A CORS preflight (the Fetch standard, section 4.8): browsers send it without the token.
    /// Plain OPTIONS requests are none, and neither are those with a body, which no browser sends
    /// and a backend might act upon (pitfall C1).
    public var isPreflight: Bool {
        method == .options && framing == .none && fields.contains(.origin)
            && fields.contains(.accessControlRequestMethod)
    }
}

/// What the fields of a request mean for the connection, beyond their syntax.
extension RequestHead {
    /// Forgets the last head and keeps the memory.
    @inline(__always)
    mutating func clear() {
        target.removeAll()
        fields.removeAll()
        framing = .none
        isPersistent = true
        expectsContinue = false
        wantsWebSocket = false
        acceptsTrailers = false
        length = 0
    }

    /// Reads `Host`, and holds an absolute-form target's authority against it (RFC 9112, section
    /// 3.2; pitfalls P4, P5).
    ///
    /// - Throws: `host` unless there is exactly one, or none on HTTP/1.0, and both agree.
    @inline(__always)
    mutating func interpretHost(
        _ bytes: Span<UInt8>, _ authority: AbsoluteAuthority?
    ) throws(MalformedMessage) {
        if let line = fields.first(.host) {
            guard fields.count(of: .host) == 1 else { throw MalformedMessage(.host) }
            try interpretHost(bytes, line.value)
            if let authority { try compare(bytes, authority) }
        } else if version == .http11 {
            throw MalformedMessage(.host)
        } else if let authority {
            try interpretHost(bytes, authority.range)
        }
    }

    @inline(__always)
    private mutating func interpretHost(
        _ bytes: Span<UInt8>, _ range: ByteRange
    ) throws(MalformedMessage) {
        if !lastHost.isWritten(bytes.slice(range)) { try lastHost.read(bytes, range) }
        target.host = lastHost.host
        target.port = lastHost.port
    }

    private func compare(
        _ bytes: Span<UInt8>, _ authority: AbsoluteAuthority
    ) throws(MalformedMessage) {
        var host: [UInt8] = []
        let port = try Authority.parse(bytes, authority.range, into: &host)
        let standard = authority.defaultPort
        guard host == target.host, port ?? standard == target.port ?? standard else {
            throw MalformedMessage(.host)
        }
    }

    /// Decides how the body is delimited (RFC 9112, section 6.3).
    ///
    /// - Throws: `contentLength`, `transferEncoding`.
    @inline(__always)
    mutating func interpretFraming(_ bytes: Span<UInt8>) throws(MalformedMessage) {
        if let line = fields.first(.contentLength), line.value.count > 1,
            bytes[Int(line.value.start)] == 0x30
        {
            // Read as octal by some; clients have no reason to pad a length.
            throw MalformedMessage(.contentLength)
        }
        switch try DeclaredFraming(bytes, fields: fields, version: version) {
        case .absent, .length(0): framing = .none
        case .length(let length): framing = .length(length)
        case .chunked: framing = .chunked
        }
    }

    /// Reads `Connection`, `Upgrade`, `TE` and `Expect`.
    ///
    /// - Throws: `connection`, `expectation`.
    @inline(__always)
    mutating func interpretConnection(_ bytes: Span<UInt8>) throws(MalformedMessage) {
        let options = try ConnectionOptions(bytes, fields: &fields, of: .request)
        isPersistent = options.isPersistent(version)
        if options.hasUpgrade { wantsWebSocket = isWebSocketUpgrade(bytes) }
        if fields.contains(.te) { acceptsTrailers = listsTrailers(bytes) }
        if fields.contains(.expect), version == .http11 { try interpretExpectation(bytes) }
    }

    /// RFC 6455, section 4.1. A request with a body is no handshake, any other protocol is not
    /// offered, and without a key nobody could tell whether an answer is one (pitfall W7).
    private func isWebSocketUpgrade(_ bytes: Span<UInt8>) -> Bool {
        guard method == .get, version == .http11, framing == .none,
            fields.count(of: .upgrade) == 1, let line = fields.first(.upgrade),
            fields.count(of: .webSocketKey) == 1, let key = fields.first(.webSocketKey)
        else { return false }
        return bytes.slice(line.value).equals("websocket")
            && key.value.count == WebSocketHandshake.keyLength
    }

    /// RFC 9110, section 10.1.4; codings with parameters do not matter here.
    private func listsTrailers(_ bytes: Span<UInt8>) -> Bool {
        for line in fields.lines where line.known == .te {
            let value = bytes.slice(line.value)
            var start = 0
            while start <= value.count {
                var end = start
                while end < value.count, value[end] != 0x2C { end += 1 }
                let element = value.slice(value.trimmed(from: start, to: end))
                if element.equals("trailers") { return true }
                start = end + 1
            }
        }
        return false
    }

    /// RFC 9110, section 10.1.1: without a body there is nothing to wait for.
    private mutating func interpretExpectation(_ bytes: Span<UInt8>) throws(MalformedMessage) {
        for line in fields.lines where line.known == .expect {
            guard bytes.slice(line.value).equals("100-continue") else {
                throw MalformedMessage(.expectation)
            }
        }
        expectsContinue = framing != .none
    }
}
