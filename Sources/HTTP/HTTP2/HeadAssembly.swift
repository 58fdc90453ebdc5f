package import Reactor

/// Collects the fields of one header block and writes them as the text of an HTTP/1.1 head, so that
/// one parser and one normalisation judge both protocols.
///
/// What could mean something else as text is refused here: a line break or blank in a pseudo-header
/// field, two authorities that differ, fields that are about a connection (RFC 9113, section 8.2;
/// pitfall W3). Only one block is under way on a connection at a time, so one assembly serves it.
package final class HeadAssembly {
    private static let kept = 16 << 10

    private let limits: HeadLimits
    private var method: [UInt8] = []
    private var path: [UInt8] = []
    private var authority: [UInt8] = []
    private var host: [UInt8] = []
    private var cookie: [UInt8] = []
    private var status: [UInt8] = []
    private var tunnelled: [UInt8] = []
    private var hasHost = false
    private var pseudoFields: PseudoFields = []
    private var hasScheme = false
    /// A field that is no pseudo-header field has come, behind which none may.
    private var hasPlainField = false
    private var answersHandshake = false
    private var lines = ByteBuffer(capacity: 1024)
    private var count = 0
    private var size = 0
    /// Fields of a block behind the content; those that must not pass are not among them.
    package private(set) var trailers: [(name: [UInt8], value: [UInt8])] = []
    private var isTrailing = false
    /// A field has no meaning that is safe: the stream is to be reset.
    package private(set) var isMalformed = false

    /// An assembly for the blocks of one connection.
    package init(limits: HeadLimits) {
        self.limits = limits
    }

    /// A header block begins.
    ///
    /// - Parameters:
    ///   - isTrailing: It comes after the content.
    ///   - answersHandshake: It answers an extended CONNECT of ours.
    package func begin(isTrailing: Bool, answersHandshake: Bool = false) {
        method.removeAll(keepingCapacity: true)
        path.removeAll(keepingCapacity: true)
        authority.removeAll(keepingCapacity: true)
        host.removeAll(keepingCapacity: true)
        cookie.removeAll(keepingCapacity: true)
        status.removeAll(keepingCapacity: true)
        tunnelled.removeAll(keepingCapacity: true)
        hasHost = false
        pseudoFields = []
        hasScheme = false
        hasPlainField = false
        self.answersHandshake = answersHandshake
        lines.shrink(above: Self.kept, to: 1024)
        count = 0
        size = 0
        trailers = []
        self.isTrailing = isTrailing
        isMalformed = false
    }

    /// Takes the next field of the block.
    ///
    /// - Returns: false when the block is so much too long that not even a refusal is due.
    package func add(_ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
        size += name.count + value.count + 4
        count += 1
        if isTooLong {
            // The parser refuses a head by its length: what is behind the limit need not be kept.
            // Of trailer fields no part may pass for all.
            if isTrailing { isMalformed = true }
            return size < 16 * limits.bytes && count < 16 * limits.fields
        }
        guard isText(value) else {
            isMalformed = true
            return true
        }
        if isTrailing {
            addTrailer(name, value)
        } else if !name.isEmpty, name[0] == UInt8(ascii: ":") {
            addPseudoField(name, value)
        } else {
            addField(name, value)
        }
        return true
    }

    private var isTooLong: Bool { size > limits.bytes || count > limits.fields + 8 }

    private func addPseudoField(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        // Blanks would end the target or the method in the text; no other character can.
        if !isUnbroken(value) || hasPlainField { isMalformed = true }
        if name.isExactly(":method") {
            take(.method)
            method.append(copying: value)
        } else if name.isExactly(":path") {
            take(.path)
            path.append(copying: value)
        } else if name.isExactly(":authority") {
            take(.authority)
            authority.append(copying: value)
        } else if name.isExactly(":scheme") {
            take(.scheme)
            hasScheme = value.equals("https") || value.equals("http")
        } else if name.isExactly(":status") {
            take(.status)
            status.append(copying: value)
        } else if name.isExactly(":protocol") {
            take(.tunnelled)
            tunnelled.append(copying: value)
        } else {
            isMalformed = true
        }
    }

    /// RFC 9113, section 8.3: each is there once.
    private func take(_ field: PseudoFields) {
        if !pseudoFields.insert(field).inserted { isMalformed = true }
    }

    private func addField(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        hasPlainField = true
        if name.isEmpty || name.endOfToken(from: 0) != name.count {
            isMalformed = true
            return
        }
        switch KnownField(plainName: name) {
        case .connection, .keepAlive, .proxyConnection, .transferEncoding, .upgrade,
            .http2Settings:
            isMalformed = true
        case .te where !value.equals("trailers"): isMalformed = true
        // What a handshake of HTTP/1.1 consists of, or makes impossible (RFC 8441, section 5).
        case .webSocketKey where isTunnel, .webSocketAccept where isTunnel || answersHandshake:
            return
        case .contentLength where isTunnel: isMalformed = true
        // The library does not count the content of what answers a CONNECT, so its end delimits it:
        // on a connection of HTTP/1.1 more than was announced would be the next answer.
        case .contentLength where answersHandshake: return
        case .host:
            if hasHost { isMalformed = true }
            hasHost = true
            host.append(copying: value)
        case .cookie:
            // RFC 9113, section 8.2.3: crumbs are one field outside of HTTP/2.
            if !cookie.isEmpty { cookie.append(contentsOf: [0x3B, 0x20]) }
            cookie.append(copying: value)
        default: lines.appendField(name, value)
        }
    }

    private func addTrailer(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        guard !name.isEmpty, name.endOfToken(from: 0) == name.count else {
            isMalformed = true
            return
        }
        if !TrailerReader.mayPass(name) { return }
        var field: (name: [UInt8], value: [UInt8]) = ([], [])
        field.name.append(copying: name)
        field.value.append(copying: value)
        trailers.append(field)
    }

    /// The block is the head of an interim response.
    var isInterim: Bool { status.first == UInt8(ascii: "1") }

    /// The block is the head of a HEAD request.
    var isHeadRequest: Bool { method.elementsEqual("HEAD".utf8) }

    /// The block is the head of a request for a WebSocket (RFC 8441, section 5).
    var isWebSocket: Bool { tunnelled.elementsEqual("websocket".utf8) }

    /// Extended CONNECT (RFC 8441, section 4); pseudo-header fields come before all others.
    private var isTunnel: Bool { pseudoFields.contains(.tunnelled) }

    private var hasAuthority: Bool { pseudoFields.contains(.authority) }

    // MARK: The text

    /// Writes the head of a request. One for a WebSocket becomes the handshake of HTTP/1.1, with a
    /// key of our own, so that it is judged, and answered, as that is.
    ///
    /// - Returns: false when the request is malformed (RFC 9113, section 8.1.1).
    package func writeRequest(into text: ByteBuffer) -> Bool {
        if isMalformed || method.isEmpty { return false }
        if isTunnel { return isHandshake && writeHandshake(into: text) }
        let isConnect = method.elementsEqual("CONNECT".utf8)
        if !isConnect && (!hasScheme || path.isEmpty || !isOriginForm) { return false }
        if hasHost && hasAuthority && !isSameAuthority { return false }
        if !hasAuthority { authority = host }
        text.append(method)
        text.append(0x20)
        text.append(isConnect ? authority : path)
        text.append(" HTTP/1.1\r\n")
        writeCommonFields(into: text)
        finish(text)
        return true
    }

    /// RFC 8441, section 4: scheme, path and authority are there, unlike in a plain CONNECT.
    private var isHandshake: Bool {
        isWebSocket && method.elementsEqual("CONNECT".utf8) && hasScheme && hasAuthority
            && path.first == UInt8(ascii: "/") && (!hasHost || isSameAuthority)
    }

    private func writeHandshake(into text: ByteBuffer) -> Bool {
        text.append("GET ")
        text.append(path)
        text.append(" HTTP/1.1\r\n")
        writeCommonFields(into: text)
        text.append("Connection: Upgrade\r\nUpgrade: websocket\r\n")
        text.appendField("Sec-WebSocket-Key", WebSocketHandshake.makeKey().span)
        finish(text)
        return true
    }

    private func writeCommonFields(into text: ByteBuffer) {
        let (authority, cookie) = (authority, cookie)
        if hasAuthority || hasHost {
            text.appendField("Host", authority.span)
        }
        if !cookie.isEmpty { text.appendField("Cookie", cookie.span) }
    }

    /// Writes the head of a response. A success that answers the handshake with `key` becomes the
    /// 101 of HTTP/1.1 with the proof that goes with it, so that it opens a WebSocket as that does.
    ///
    /// - Parameter key: Of an extended CONNECT of ours (RFC 8441, section 5).
    /// - Returns: false when the response is malformed.
    package func writeResponse(into text: ByteBuffer, to key: [UInt8]? = nil) -> Bool {
        if isMalformed || status.count != 3 { return false }
        if let key, status[0] == UInt8(ascii: "2") {
            text.append("HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
            text.appendField(
                "Sec-WebSocket-Accept", WebSocketHandshake.accept(of: key.span).span)
            finish(text)
            return true
        }
        text.append("HTTP/1.1 ")
        text.append(status)
        text.append(" \r\n")
        finish(text)
        return true
    }

    /// RFC 9113, section 8.3.1: where both are there, they say the same.
    private var isSameAuthority: Bool {
        host.count == authority.count
            && zip(host, authority).allSatisfy { $0.lowercased == $1.lowercased }
    }

    /// A path, or `*` for OPTIONS; an absolute target could name another host than `:authority`.
    private var isOriginForm: Bool {
        path.first == UInt8(ascii: "/")
            || path.elementsEqual("*".utf8) && method.elementsEqual("OPTIONS".utf8)
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

    // MARK: Characters

    /// RFC 9110, section 5.5: no line break, no NUL, no other control but a tab.
    private func isText(_ value: Span<UInt8>) -> Bool {
        for index in value.indices {
            let byte = value[index]
            if byte < 0x20 && byte != 0x09 || byte == 0x7F { return false }
        }
        return value.isEmpty || !value[0].isBlank && !value[value.count - 1].isBlank
    }

    private func isUnbroken(_ value: Span<UInt8>) -> Bool {
        for index in value.indices where value[index] <= 0x20 || value[index] >= 0x7F {
            return false
        }
        return true
    }
}

/// Which pseudo-header fields a block has.
private struct PseudoFields: OptionSet {
    let rawValue: UInt8
    static let method = Self(rawValue: 1)
    static let path = Self(rawValue: 2)
    static let authority = Self(rawValue: 4)
    static let scheme = Self(rawValue: 8)
    static let status = Self(rawValue: 16)
    static let tunnelled = Self(rawValue: 32)
}

extension Span where Element == UInt8 {
    /// The names of pseudo-header fields have one spelling.
    fileprivate func isExactly(_ name: StaticString) -> Bool {
        count == name.utf8CodeUnitCount && hasExactPrefix(name)
    }
}

extension [UInt8] {
    fileprivate mutating func append(copying span: Span<UInt8>) {
        span.withUnsafeBufferPointer { append(contentsOf: $0) }
    }
}
