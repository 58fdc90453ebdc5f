internal import HTTP
internal import Policy

/// The request as it would arrive, read by the parser of the data path.
struct SentRequest {
    /// The bytes that the ranges of `head` refer to.
    let bytes: [UInt8]
    let head: RequestHead

    /// - Parameter token: The token that was given apart from the fields.
    /// - Throws: What the parser refuses; the data path would too.
    init(_ request: ExplainRequest, token: String?) throws(MalformedMessage) {
        var text = "\(request.method) \(request.url.target) HTTP/1.1\r\n"
        if !request.fields.contains(where: { $0.name.lowercased() == "host" }) {
            text += "Host: \(request.url.authority)\r\n"
        }
        for field in request.fields { text += "\(field.name): \(field.value)\r\n" }
        if let token { text += "X-Firebase-AppCheck: \(token)\r\n" }
        let bytes = Array((text + "\r\n").utf8)
        var parser = RequestParser(limits: HeadLimits())
        var head = RequestHead()
        let isComplete = try parser.parse(bytes.span, into: &head)
        // Text behind a blank line in a value would be a second request.
        let isAlone = head.length == bytes.count
        if !isComplete || !isAlone { throw MalformedMessage(.fieldValue) }
        self.head = head
        self.bytes = bytes
    }

    var method: [UInt8] { slice(head.methodName) }
    var host: [UInt8] { head.target.host }

    /// The normalised path.
    var path: [UInt8] {
        head.target.pathBytes(in: bytes.span).withUnsafeBytes { Array($0) }
    }

    /// Without "?".
    var query: [UInt8] { slice(head.target.query) }

    /// Values of a field, in order.
    func values(of field: KnownField) -> [[UInt8]] {
        head.fields.lines.filter { $0.known == field }.map { slice($0.value) }
    }

    /// Every token that the request has for a route, in its own field or, in a WebSocket handshake,
    /// where the route takes it.
    func tokens(on route: Route) -> [[UInt8]] {
        let tokens = values(of: .appCheckToken)
        guard route.webSocketToken == .protocol, head.wantsWebSocket else { return tokens }
        return values(of: .webSocketProtocol).reduce(into: tokens) { tokens, value in
            var list = SubprotocolList()
            while let entry = list.next(in: value.span) {
                if let token = entry.token { tokens.append(Array(value[token])) }
            }
        }
    }

    /// Whether there is a field of this name, lower case.
    func hasField(_ name: String) -> Bool {
        head.fields.lines.contains {
            String(decoding: slice($0.name), as: UTF8.self).lowercased() == name
        }
    }

    /// The first value of a field of this name, lower case.
    func value(of name: String) -> [UInt8]? {
        head.fields.lines.first {
            String(decoding: slice($0.name), as: UTF8.self).lowercased() == name
        }.map { slice($0.value) }
    }

    private func slice(_ range: ByteRange) -> [UInt8] {
        Array(bytes[Int(range.start)..<range.end])
    }
}
