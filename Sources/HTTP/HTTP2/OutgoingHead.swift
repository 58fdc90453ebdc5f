internal import CNGHTTP2
internal import Reactor

/// Turns the text of a head that the proxy wrote into the fields of a header block. It serves one
/// head after the other, and keeps its memory.
///
/// The text is taken apart, not judged: every line is one that a parser accepted, or the proxy's own,
/// as in the heads that go out over HTTP/1.1.
final class OutgoingHead {
    enum Progress {
        /// More of the text is needed.
        case incomplete
        /// The head of an interim response was complete after so many bytes.
        case interim(Int)
        /// The head was complete after so many bytes; how its content is delimited.
        case final(Int, BodyFraming)
    }

    /// What the text is.
    enum Kind {
        /// The handshake of a WebSocket goes out as an extended CONNECT (RFC 8441).
        case request
        /// What a response answers: a HEAD has no content whatever its fields say, and 101 opens a
        /// WebSocket where it was asked for with an extended CONNECT.
        case response(to: Method, opensWebSocket: Bool)
    }

    private static let keptTextSize = 8 << 10
    private static let statusStart = 9

    private let text = ByteBuffer(capacity: 1024)
    private var lines = FieldSection()
    private var kind = Kind.request
    private var method = ByteRange.empty
    private var target = ByteRange.empty
    private var status: UInt16 = 0
    /// The request is the handshake of a WebSocket, and becomes an extended CONNECT.
    private var asksForWebSocket = false
    private var list: [nghttp2_nv] = []

    /// Takes bytes of the text up to the end of the head.
    ///
    /// - Throws: `startLine` or `fieldName`: this is no head.
    func take(_ bytes: UnsafeRawBufferPointer, of kind: Kind) throws(MalformedMessage) -> Progress {
        self.kind = kind
        let text = self.text
        let before = text.count
        text.append(copying: bytes)
        guard let end = try split(text.bytes) else { return .incomplete }
        let taken = end - before
        guard case .response(let method, _) = kind else {
            asksForWebSocket = try isHandshake(text.bytes)
            return .final(taken, asksForWebSocket ? .untilClose : framing(text.bytes) ?? .none)
        }
        if isSwitching { return .final(taken, .untilClose) }
        if status < 200 { return .interim(taken) }
        if method == .head || status == 204 || status == 304 { return .final(taken, .none) }
        return .final(taken, framing(text.bytes) ?? .untilClose)
    }

    /// Finds the lines of a head.
    ///
    /// - Returns: the index behind it; nil when it is not complete.
    private func split(_ bytes: Span<UInt8>) throws(MalformedMessage) -> Int? {
        lines.removeAll()
        guard let first = bytes.firstLineFeed(from: 0, to: bytes.count) else { return nil }
        try takeStartLine(bytes, until: first)
        var start = first + 1
        while let end = bytes.firstLineFeed(from: start, to: bytes.count) {
            if end == start + 1 { return end + 1 }
            try takeLine(bytes, from: start, to: end - 1)
            start = end + 1
        }
        return nil
    }

    /// `GET /path HTTP/1.1`, or `HTTP/1.1 200 OK`.
    private func takeStartLine(
        _ bytes: Span<UInt8>, until end: Int
    ) throws(MalformedMessage) {
        if case .response = kind {
            let range = ByteRange(start: Self.statusStart, count: 3)
            guard end >= range.end, let status = bytes.slice(range).decimalValue else {
                throw MalformedMessage(.startLine)
            }
            self.status = UInt16(truncatingIfNeeded: status)
            return
        }
        let methodEnd = bytes.endOfToken(from: 0)
        let targetEnd = bytes.endOfVisible(from: methodEnd + 1)
        guard methodEnd > 0, targetEnd < end, bytes[methodEnd] == 0x20, bytes[targetEnd] == 0x20
        else { throw MalformedMessage(.startLine) }
        method = ByteRange(start: 0, count: methodEnd)
        target = ByteRange(start: methodEnd + 1, count: targetEnd - methodEnd - 1)
    }

    private func takeLine(
        _ bytes: Span<UInt8>, from start: Int, to end: Int
    ) throws(MalformedMessage) {
        var colon = bytes.endOfPlainName(from: start)
        let isPlain = colon < end && bytes[colon] == 0x3A
        if !isPlain { colon = bytes.endOfToken(from: start) }
        guard colon > start, colon < end, bytes[colon] == 0x3A else {
            throw MalformedMessage(.fieldName)
        }
        let name = ByteRange(start: start, count: colon - start)
        let known = isPlain ? KnownField(plainName: bytes.slice(name)) : .other
        lines.append(
            FieldLine(
                name: name, value: bytes.trimmed(from: colon + 1, to: end), known: known,
                isHopByHop: known.isHopByHop))
    }

    /// What the fields say about the content; nil when they say nothing.
    private func framing(_ bytes: Span<UInt8>) -> BodyFraming? {
        if lines.contains(.transferEncoding) { return .chunked }
        guard let line = lines.first(.contentLength),
            let length = bytes.slice(line.value).decimalValue
        else { return nil }
        return length == 0 ? BodyFraming.none : .length(length)
    }

    /// What a parser would take for the handshake of a WebSocket (RFC 6455, section 4.1).
    private func isHandshake(_ bytes: Span<UInt8>) throws(MalformedMessage) -> Bool {
        guard lines.contains(.upgrade), lines.contains(.webSocketKey) else { return false }
        var head = RequestHead()
        var parser = RequestParser(
            limits: HeadLimits(bytes: 1 << 20, fields: 1000, target: 1 << 20))
        return try parser.parse(bytes, into: &head) && head.wantsWebSocket
    }

    /// The head is that of a HEAD request.
    var isHeadRequest: Bool {
        let text = text
        return text.bytes.slice(method).equals(exactly: "HEAD")
    }

    /// The key of the handshake that the head is; nil where it is none.
    var webSocketKey: [UInt8]? {
        guard asksForWebSocket, let key = lines.first(.webSocketKey) else { return nil }
        return text.withUnsafeBytes { Array($0[Int(key.value.start)..<key.value.end]) }
    }

    /// The response that opens a WebSocket, which is 200 here (RFC 8441, section 5).
    private var isSwitching: Bool {
        if case .response(_, opensWebSocket: true) = kind { return status == 101 }
        return false
    }

    /// Forgets the head and keeps the memory.
    func reset() {
        text.shrink(above: Self.keptTextSize, to: 1024)
        lines.removeAll()
        // Its pointers are of no use any more.
        list.removeAll(keepingCapacity: true)
    }

    /// Calls `body` with the fields of the header block. Names are in small letters, and what is
    /// about a connection is left out.
    func withFields(
        isSecure: Bool, _ body: (UnsafePointer<nghttp2_nv>, Int) -> Void
    ) {
        // The names become small in place; the ranges stay what they are. Safe: a buffer's memory is
        // mutable, `self` holds this one for the whole call, and no parser looks at it any more.
        let base = text.withUnsafeBytes { UnsafeMutableRawBufferPointer(mutating: $0) }
        switch kind {
        case .request:
            beginRequest(base, isSecure: isSecure)
            for line in lines.lines where passes(line, in: base) { append(line, in: base) }
        case .response:
            beginResponse(base)
            let isSwitching = isSwitching
            for line in lines.lines
            where !line.isHopByHop && line.known != .transferEncoding
                && !(isSwitching && line.known == .webSocketAccept)
            {
                append(line, in: base)
            }
        }
        // Safe: `text` is alive and unchanged until `body` returns, and the library copies what it
        // keeps; literals live for ever. The library does not write through these pointers.
        list.withUnsafeBufferPointer { list in
            if let start = list.baseAddress { body(start, list.count) }
        }
    }

    /// Calls `body` with trailer fields. Names are in small letters.
    func withTrailers(
        _ trailers: [(name: [UInt8], value: [UInt8])],
        _ body: (UnsafePointer<nghttp2_nv>, Int) -> Void
    ) {
        reset()
        for field in trailers {
            let start = text.count
            text.append(field.name)
            text.append(field.value)
            lines.append(
                FieldLine(
                    name: ByteRange(start: start, count: field.name.count),
                    value: ByteRange(start: start + field.name.count, count: field.value.count),
                    known: .other))
        }
        // Safe: as in `withFields`.
        let base = text.withUnsafeBytes { UnsafeMutableRawBufferPointer(mutating: $0) }
        for line in lines.lines { append(line, in: base) }
        list.withUnsafeBufferPointer { list in
            if let start = list.baseAddress { body(start, list.count) }
        }
    }

    private func passes(_ line: FieldLine, in base: UnsafeMutableRawBufferPointer) -> Bool {
        switch line.known {
        case .host, .transferEncoding: false
        // RFC 9113, section 8.2.2.
        case .te: isTrailers(UnsafeRawBufferPointer(slice(line.value, of: base)))
        default: !line.isHopByHop
        }
    }

    private func isTrailers(_ value: UnsafeRawBufferPointer) -> Bool {
        value.bindMemory(to: UInt8.self).span.equals("trailers")
    }

    private func beginRequest(_ base: UnsafeMutableRawBufferPointer, isSecure: Bool) {
        if asksForWebSocket {
            // The key goes along, which nobody has to look at (RFC 8441, section 5): Envoy makes
            // none when it goes on over HTTP/1.1.
            append(":method", "CONNECT")
            append(":protocol", "websocket")
        } else {
            append(":method", slice(method, of: base))
        }
        append(":scheme", isSecure ? "https" : "http")
        append(":path", slice(target, of: base))
        if let host = lines.first(.host) {
            append(":authority", slice(host.value, of: base))
        }
    }

    private func beginResponse(_ base: UnsafeMutableRawBufferPointer) {
        if isSwitching {
            append(":status", "200")
        } else {
            append(":status", slice(ByteRange(start: Self.statusStart, count: 3), of: base))
        }
    }

    @inline(__always)
    private func slice(
        _ range: ByteRange, of base: UnsafeMutableRawBufferPointer
    ) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: base[Int(range.start)..<range.end])
    }

    private func append(_ name: StaticString, _ value: StaticString) {
        append(
            name,
            UnsafeMutableRawBufferPointer(
                start: UnsafeMutableRawPointer(mutating: value.utf8Start),
                count: value.utf8CodeUnitCount))
    }

    private func append(_ name: StaticString, _ value: UnsafeMutableRawBufferPointer) {
        list.append(
            nghttp2_nv(
                name: UnsafeMutablePointer(mutating: name.utf8Start),
                value: value.baseAddress?.assumingMemoryBound(to: UInt8.self),
                namelen: name.utf8CodeUnitCount, valuelen: value.count,
                flags: UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)))
    }

    @inline(__always)
    private func append(_ line: FieldLine, in base: UnsafeMutableRawBufferPointer) {
        let name = slice(line.name, of: base).assumingMemoryBound(to: UInt8.self)
        for index in 0..<name.count { name[index] = name[index].lowercased }
        list.append(
            nghttp2_nv(
                name: name.baseAddress,
                value: slice(line.value, of: base).baseAddress?
                    .assumingMemoryBound(to: UInt8.self),
                namelen: name.count, valuelen: Int(line.value.count),
                flags: flags(of: line.known)))
    }

    /// Credentials stay out of the compression table, where guesses could be compared with them (RFC
    /// 7541, section 7.1), and so do values that never come twice: they would push the others out.
    private func flags(of field: KnownField) -> UInt8 {
        switch field {
        case .authorization, .cookie, .appCheckToken, .requestID, .traceparent:
            UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
        default: 0
        }
    }
}
