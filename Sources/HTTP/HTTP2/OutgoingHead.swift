internal import CNGHTTP2
internal import Reactor

/// Turns the text of a head that the proxy wrote into the fields of a header block.
struct OutgoingHead {
    enum Progress {
        /// More of the text is needed.
        case incomplete
        /// The head of an interim response was complete after so many bytes.
        case interim(Int)
        /// The head was complete after so many bytes; how its content is delimited.
        case final(Int, BodyFraming)
    }

    private let role: HTTP2Session.Role
    private var text: ByteBuffer?
    private var request = RequestHead()
    private var response = ResponseHead()
    /// What a response answers; a HEAD has no content whatever its fields say.
    var requestMethod = Method.get
    /// What a response answers is an extended CONNECT for a WebSocket.
    var opensWebSocket = false

    init(role: HTTP2Session.Role) {
        self.role = role
    }

    /// Takes bytes of the text up to the end of the head.
    ///
    /// - Throws: what the parser says; the proxy wrote something that it would not accept itself.
    mutating func take(_ bytes: UnsafeRawBufferPointer) throws(MalformedMessage) -> Progress {
        let text = self.text ?? ByteBuffer(capacity: max(1024, bytes.count))
        self.text = text
        let before = text.count
        text.reserve(bytes.count)
        _ = text.appendUnsafe { free in
            // Safe: `reserve` made room for all of `bytes`, which are not the buffer's own.
            free.copyMemory(from: bytes)
            return bytes.count
        }
        let isComplete: Bool
        let length: Int
        let framing: BodyFraming
        if role == .server {
            var parser = ResponseParser(limits: HeadLimits(bytes: 1 << 20, fields: 1000))
            isComplete = try parser.parse(
                text.bytes, requestMethod: requestMethod, into: &response)
            length = response.length
            framing = response.framing
        } else {
            var parser = RequestParser(
                limits: HeadLimits(bytes: 1 << 20, fields: 1000, target: 1 << 20))
            isComplete = try parser.parse(text.bytes, into: &request)
            length = request.length
            framing = request.framing
        }
        if !isComplete { return .incomplete }
        let taken = length - before
        if isSwitching || asksForWebSocket { return .final(taken, .untilClose) }
        return role == .server && response.isInformational
            ? .interim(taken) : .final(taken, framing)
    }

    /// The response that opens a WebSocket, which is 200 here (RFC 8441, section 5).
    private var isSwitching: Bool { opensWebSocket && response.status == 101 }

    /// The request is the handshake of a WebSocket, and becomes an extended CONNECT.
    private var asksForWebSocket: Bool { role == .client && request.wantsWebSocket }

    /// The key of the handshake that the head is; nil where it is none.
    var webSocketKey: [UInt8]? {
        guard asksForWebSocket, let text, let key = request.fields.first(.webSocketKey) else {
            return nil
        }
        return text.withUnsafeBytes { Array($0[Int(key.value.start)..<key.value.end]) }
    }

    /// Forgets the head and keeps the memory.
    mutating func reset() {
        text?.removeAll()
    }

    /// Forgets the head.
    mutating func release() {
        text = nil
    }

    /// Calls `body` with the fields of the header block. Names are in small letters, and what is
    /// about a connection is left out.
    func withFields(
        isSecure: Bool, _ body: (UnsafePointer<nghttp2_nv>, Int) -> Void
    ) {
        guard let text else { return }
        let fields = role == .server ? response.fields : request.fields
        // The names become small in place; the ranges stay what they are. Safe: a buffer's memory is
        // mutable, `self` holds this one for the whole call, and no parser looks at it any more.
        let base = text.withUnsafeBytes { UnsafeMutableRawBufferPointer(mutating: $0) }
        for line in fields.lines {
            for index in Int(line.name.start)..<line.name.end {
                base[index] = base[index].lowercased
            }
        }
        var list: [nghttp2_nv] = []
        list.reserveCapacity(fields.lines.count + 5)
        // Safe: `text` is alive and unchanged until `body` returns, and the library copies what it
        // keeps; literals live for ever. The library does not write through these pointers.
        func entry(_ name: StaticString, _ value: UnsafeRawBufferPointer) {
            list.append(
                nghttp2_nv(
                    name: UnsafeMutablePointer(mutating: name.utf8Start),
                    value: UnsafeMutableRawPointer(mutating: value.baseAddress)?
                        .assumingMemoryBound(to: UInt8.self),
                    namelen: name.utf8CodeUnitCount, valuelen: value.count,
                    flags: UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)))
        }
        func slice(_ range: ByteRange) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: base[Int(range.start)..<range.end])
        }
        if role == .server {
            let success: StaticString = "200"
            entry(
                ":status",
                isSwitching
                    ? UnsafeRawBufferPointer(start: success.utf8Start, count: 3)
                    : slice(ByteRange(start: 9, count: 3)))
        } else {
            if asksForWebSocket {
                // The key goes along, which nobody has to look at (RFC 8441, section 5): Envoy makes
                // none when it goes on over HTTP/1.1.
                let method: StaticString = "CONNECT"
                let name: StaticString = "websocket"
                entry(":method", UnsafeRawBufferPointer(start: method.utf8Start, count: 7))
                entry(":protocol", UnsafeRawBufferPointer(start: name.utf8Start, count: 9))
            } else {
                entry(":method", slice(request.methodName))
            }
            let scheme: StaticString = isSecure ? "https" : "http"
            entry(
                ":scheme",
                UnsafeRawBufferPointer(
                    start: scheme.utf8Start, count: scheme.utf8CodeUnitCount))
            entry(":path", slice(request.target.raw))
            if let host = request.fields.first(.host) { entry(":authority", slice(host.value)) }
        }
        for line in fields.lines {
            switch line.known {
            case .host where role == .client: continue
            case .te where role == .client && request.acceptsTrailers: break
            case .transferEncoding: continue
            case .webSocketAccept where isSwitching: continue
            default: if line.isHopByHop { continue }
            }
            let name = slice(line.name)
            let value = slice(line.value)
            list.append(
                nghttp2_nv(
                    name: UnsafeMutableRawPointer(mutating: name.baseAddress)?
                        .assumingMemoryBound(to: UInt8.self),
                    value: UnsafeMutableRawPointer(mutating: value.baseAddress)?
                        .assumingMemoryBound(to: UInt8.self),
                    namelen: name.count, valuelen: value.count,
                    flags: flags(of: line.known)))
        }
        list.withUnsafeBufferPointer { list in
            if let start = list.baseAddress { body(start, list.count) }
        }
    }

    /// Credentials stay out of the compression table, where guesses could be compared with them (RFC
    /// 7541, section 7.1).
    private func flags(of field: KnownField) -> UInt8 {
        switch field {
        case .authorization, .cookie, .appCheckToken: UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
        default: 0
        }
    }
}
