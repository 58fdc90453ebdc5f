internal import HTTP
internal import Reactor

/// What must hold for any fields that arrive as a header block of HTTP/2, on their way through the
/// text of an HTTP/1.1 head and back into a header block. A fuzzer and the replay of its corpus share
/// it.
///
/// The first byte says what the block is: a request's head, a response's, or trailer fields; for the
/// rest see `TranslatedFields`. The assembly is asked itself, without the checks of the library
/// before it: what could be smuggled through text has to be refused by it alone (pitfall W3).
public enum TranslationInvariants {
    private static let ample = HeadLimits(bytes: 64 << 10, fields: 100, target: 16 << 10)

    /// - Returns: nil, or what is wrong.
    public static func violation(of bytes: [UInt8]) -> String? {
        guard let kind = bytes.first else { return nil }
        let fields = TranslatedFields(bytes.dropFirst())
        switch kind % 3 {
        case 0: return violation(ofRequest: fields)
        case 1: return violation(ofResponse: fields)
        default: return violation(ofTrailers: fields)
        }
    }

    // MARK: Requests

    private static func violation(ofRequest fields: TranslatedFields) -> String? {
        let limits = HeadInvariants.limits
        guard let assembly = fields.assembled(isTrailing: false, limits) else { return nil }
        let text = ByteBuffer(capacity: 256)
        guard assembly.writeRequest(into: text) else {
            return text.isEmpty ? nil : "refused, and a part of it was written"
        }
        let bytes = text.copy
        if bytes.count > 4 * limits.bytes { return "\(bytes.count) bytes of text" }
        switch outcomeOfRequest(bytes, limits: limits, arrivals: [bytes.count]) {
        case .incomplete: return "the text is no whole head"
        case .malformed: return nil
        case .message(let request):
            if request.length != bytes.count { return "more than a head was written" }
            return HeadInvariants.violation(ofRequest: bytes) ?? compare(request, fields)
                ?? returnTrip(of: bytes, request)
        }
    }

    /// Holds the parsed text against the fields of the block.
    private static func compare(_ request: RequestCopy, _ fields: TranslatedFields) -> String? {
        let isHandshake = fields[pseudo: ":protocol"] != nil
        var made: Set<String> = ["host", "cookie"]
        if isHandshake {
            made.formUnion([
                "connection", "upgrade", "sec-websocket-key", "sec-websocket-accept",
            ])
            if !request.wantsWebSocket { return "a handshake that is none" }
        } else if fields[pseudo: ":method"] != request.method {
            return "another method"
        }
        if request.framing == .chunked || request.version != .http11 {
            return "framed as nothing in HTTP/2 is"
        }
        if !isHandshake,
            let line = request.fields.first(where: {
                $0.isHopByHop && ["connection", "upgrade"].contains(smallName($0.name))
            })
        {
            return "\(smallName(line.name)) in a head of HTTP/2"
        }
        let kept = request.fields.filter { !made.contains(smallName($0.name)) }
        let hasSame = kept.map { [$0.name, $0.value] } == fields.plain(without: made)
        if !hasSame { return "other fields than the block's" }
        let hosts = request.fields.filter { $0.known == .host }.map(\.value)
        let host = fields.all.first { smallName($0.name) == "host" }?.value
        let given = fields[pseudo: ":authority"] ?? host
        return hosts == [given ?? []] ? nil : "another host"
    }

    /// The head as one of our own client's, read by a server of ours.
    private static func returnTrip(of text: [UInt8], _ request: RequestCopy) -> String? {
        guard let both = SessionPair(), let stream = both.client.openStream() else {
            return "no session"
        }
        guard stream.writeAll(text) else { return "our client does not take the head" }
        guard both.settle(), let served = both.requests.first else {
            return "our server does not take what our client sends"
        }
        let again = served.readAll()
        let outcome = outcomeOfRequest(again, limits: ample, arrivals: [again.count])
        guard case .message(let repeated) = outcome else { return "read again it is \(outcome)" }
        if repeated.method != request.method || repeated.path != request.path
            || repeated.query != request.query || repeated.host != request.host
            || repeated.port != request.port || repeated.framing != request.framing
            || repeated.wantsWebSocket != request.wantsWebSocket
            || repeated.acceptsTrailers != request.acceptsTrailers
        {
            return "read again it is \(repeated), before \(request)"
        }
        return passed(request.fields) == passed(repeated.fields)
            ? nil : "read again it has other fields: \(repeated), before \(request)"
    }

    // MARK: Responses

    private static func violation(ofResponse fields: TranslatedFields) -> String? {
        let limits = HeadInvariants.limits
        guard let assembly = fields.assembled(isTrailing: false, limits) else { return nil }
        let text = ByteBuffer(capacity: 256)
        guard assembly.writeResponse(into: text) else {
            return text.isEmpty ? nil : "refused, and a part of it was written"
        }
        let bytes = text.copy
        if bytes.count > 4 * limits.bytes { return "\(bytes.count) bytes of text" }
        switch outcomeOfResponse(bytes, to: .get, limits: limits, arrivals: [bytes.count]) {
        case .incomplete: return "the text is no whole head"
        case .malformed: return nil
        case .message(let response):
            if response.length != bytes.count { return "more than a head was written" }
            if response.framing == .chunked { return "framed as nothing in HTTP/2 is" }
            return HeadInvariants.violation(ofResponse: bytes) ?? compare(response, fields)
                ?? returnTrip(of: bytes, response)
        }
    }

    private static func compare(_ response: ResponseCopy, _ fields: TranslatedFields) -> String? {
        if fields[pseudo: ":status"] != Array("\(response.status)".utf8) { return "another status" }
        var made: Set<String> = ["host", "cookie"]
        // An answer without content says no length, whatever came (RFC 9110, section 8.6).
        if response.status == 204 { made.insert("content-length") }
        let lines = response.fields.filter { !made.contains(smallName($0.name)) }
        let given = fields.plain(without: made)
        return lines.map { [$0.name, $0.value] } == given ? nil : "other fields than the block's"
    }

    private static func returnTrip(of text: [UInt8], _ response: ResponseCopy) -> String? {
        // No answer over HTTP/2 is one, but to a handshake (RFC 9113, section 8.6).
        if response.status == 101 { return nil }
        guard let both = SessionPair(), let stream = both.client.openStream(),
            stream.writeAll(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)), both.settle(),
            let served = both.requests.first
        else { return "no session" }
        _ = served.readAll()
        guard served.writeAll(text) else { return "our server does not take the head" }
        if !both.settle() { return "our client does not take what our server sends" }
        let again = stream.readAll()
        let outcome = outcomeOfResponse(
            again, to: .get, limits: ample, arrivals: [again.count])
        guard case .message(let repeated) = outcome else { return "read again it is \(outcome)" }
        return repeated.status == response.status && repeated.framing == response.framing
            && passed(repeated.fields) == passed(response.fields)
            ? nil : "read again it is \(repeated), before \(response)"
    }

    // MARK: Trailer fields

    private static func violation(ofTrailers fields: TranslatedFields) -> String? {
        guard let assembly = fields.assembled(isTrailing: true, HeadInvariants.limits),
            !assembly.isMalformed
        else { return nil }
        for (name, value) in assembly.trailers {
            let forbidden = [
                "host", "content-length", "transfer-encoding", "x-firebase-appcheck",
                "authorization",
                "x-forwarded-for", "connection", "set-cookie", "cookie", "upgrade",
            ]
            let small = smallName(name).replacing("_", with: "-")
            if name.isEmpty || name.contains(where: { $0 <= 0x20 || $0 >= 0x7F || $0 == 0x3A }) {
                return "a trailer field's name is \(small)"
            }
            if forbidden.contains(small) { return "\(small) behind the content" }
            if value.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
                return "a control character behind the content"
            }
        }
        return nil
    }

    /// The fields that go on, as names in small letters and values.
    private static func passed(_ fields: [FieldCopy]) -> [[[UInt8]]] {
        fields.filter { field in
            switch field.known {
            // Ours says it again, or each side makes its own.
            case .host, .te, .webSocketKey, .webSocketAccept: false
            default: !field.isHopByHop
            }
        }.map { [Array(smallName($0.name).utf8), $0.value] }
    }
}
