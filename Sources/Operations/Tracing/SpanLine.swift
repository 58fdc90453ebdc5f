internal import HTTP
internal import Policy
internal import Proxy
internal import Replay

/// Writes the spans of requests as OTLP has them in JSON, with the attributes of OpenTelemetry's
/// semantic conventions for HTTP and our own under `portcullis.`.
///
/// Text of the client is bounded, escaped and rid of tokens, as in the access log (pitfall O5); of
/// the target only the path is told.
struct SpanLine {
    private enum Kind: UInt64 {
        case server = 2
        case client = 3
    }

    /// The target as it may be shown; kept for its memory.
    private var target: [UInt8] = []

    /// Writes the span of a request, without its line feed.
    mutating func appendServer(
        _ record: RequestRecord, _ trace: RequestTrace, _ names: SpanNames,
        to line: inout LineWriter
    ) {
        begin(
            record, names, .server, trace.traceID, span: trace.spanID, parent: trace.parentID,
            &line)
        let start = record.startedAt
        times(from: start, to: start &+ record.totalMicroseconds, &line)
        appendRequest(record, &line)
        line.attribute("url.scheme", word: trace.isEncrypted ? "https" : "http")
        line.attribute("url.path", text: path(of: record), limit: TargetRedaction.longest + 3)
        line.attribute("server.address", text: record.host, limit: 256)
        line.attribute("client.address", text: record.clientAddress, limit: 64)
        let peer = record.peerAddress.isEmpty ? record.clientAddress : record.peerAddress
        line.attribute("network.peer.address", text: peer, limit: 64)
        line.attribute("network.protocol.name", word: "http")
        line.attribute("network.protocol.version", word: record.networkVersion)
        if !record.userAgent.isEmpty {
            line.attribute("user_agent.original", text: record.userAgent, limit: 256)
        }
        if let path = names.path(record.route) { line.attribute("http.route", rendered: path) }
        appendVerdict(record, names, &line)
        if record.status > 0 {
            line.attribute("http.response.status_code", number: UInt64(record.status))
        }
        line.attribute("http.response.body.size", number: record.bytesOut)
        line.attribute("http.request.body.size", number: record.bytesIn)
        let isOurs = record.failure?.isOfUpstream == true
        // What the client did wrong is no error of ours (semantic conventions for HTTP spans).
        end(record, isError: record.status >= 500 || isOurs, &line)
    }

    /// Writes the span of asking an upstream, without its line feed.
    mutating func appendClient(
        _ record: RequestRecord, _ trace: RequestTrace, _ names: SpanNames,
        to line: inout LineWriter
    ) {
        begin(
            record, names, .client, trace.traceID, span: trace.upstreamSpanID,
            parent: trace.spanID, &line)
        let start = record.startedAt &+ trace.upstreamStart
        times(from: start, to: start &+ (record.upstreamMicroseconds ?? 0), &line)
        appendRequest(record, &line)
        let server = UpstreamAddress(record.upstreamServer)
        if !server.host.isEmpty {
            line.attribute("server.address", text: server.host, limit: 128)
        }
        if let port = server.port { line.attribute("server.port", number: UInt64(port)) }
        if let upstream = names.names.upstream(record.upstream) {
            line.attribute("portcullis.upstream", rendered: upstream)
        }
        if trace.resendCount > 0 {
            line.attribute("http.request.resend_count", number: UInt64(clamping: trace.resendCount))
        }
        let isOurs = record.failure?.isOfUpstream == true
        if record.status > 0 && !isOurs {
            line.attribute("http.response.status_code", number: UInt64(record.status))
        }
        end(record, isError: record.status >= 400 || isOurs, &line)
    }

    // MARK: Parts

    private func begin(
        _ record: RequestRecord, _ names: SpanNames, _ kind: Kind, _ trace: TraceID, span: UInt64,
        parent: UInt64?, _ line: inout LineWriter
    ) {
        line.append("{\"traceId\":\"")
        line.append(hexadecimal: trace.high)
        line.append(hexadecimal: trace.low)
        line.append("\",\"spanId\":\"")
        line.append(hexadecimal: span)
        if let parent {
            line.append("\",\"parentSpanId\":\"")
            line.append(hexadecimal: parent)
        }
        // Sampled.
        line.append("\",\"flags\":1,\"name\":\"")
        line.append(record.method.spanName)
        // The name of a route has its quotes already.
        if kind == .server, let path = names.path(record.route) {
            line.append(" ")
            line.append(verbatim: path.span.extracting(1..<(path.count - 1)))
        }
        line.append("\",\"kind\":")
        line.append(decimal: kind.rawValue)
    }

    private func times(from start: Int64, to end: Int64, _ line: inout LineWriter) {
        line.append(",\"startTimeUnixNano\":\"")
        line.append(decimal: UInt64(clamping: start))
        line.append("000\",\"endTimeUnixNano\":\"")
        line.append(decimal: UInt64(clamping: max(start, end)))
        line.append("000\",\"attributes\":[")
    }

    /// Begins the list of attributes.
    private func appendRequest(_ record: RequestRecord, _ line: inout LineWriter) {
        line.append("{\"key\":\"http.request.method\",\"value\":{\"stringValue\":\"")
        line.append(record.method.attribute)
        line.append("\"}}")
        if record.method == .other {
            line.attribute("http.request.method_original", text: record.methodName, limit: 32)
        }
    }

    private func appendVerdict(
        _ record: RequestRecord, _ names: SpanNames, _ line: inout LineWriter
    ) {
        line.attribute("portcullis.request_id", text: record.requestID, limit: 128)
        line.attribute("portcullis.listener", text: record.listener, limit: 256)
        if let route = names.names.route(record.route) {
            line.attribute("portcullis.route", rendered: route)
        }
        if let verdict = record.verdict {
            line.attribute("portcullis.verdict", word: verdict.word)
            if let reason = verdict.reason {
                line.attribute("portcullis.reason", text: reason, limit: 64)
            }
        }
        if let action = record.action { line.attribute("portcullis.action", word: action.word) }
        if let code = record.code {
            line.attribute("portcullis.code", text: code.rawValue, limit: 64)
        }
        if record.token != nil {
            line.attribute("portcullis.app", rendered: names.names.app(record.app))
        }
        if let claim = record.claim {
            let word = record.isClaimReleased ? ClaimResult.released : claim
            line.attribute("portcullis.claim", text: word.rawValue, limit: 64)
        }
    }

    private func end(_ record: RequestRecord, isError: Bool, _ line: inout LineWriter) {
        if isError {
            if let failure = record.failure {
                line.attribute("error.type", text: failure.rawValue, limit: 64)
            } else {
                line.append(",{\"key\":\"error.type\",\"value\":{\"stringValue\":\"")
                line.append(decimal: UInt64(record.status))
                line.append("\"}}")
            }
            line.append("],\"status\":{\"code\":2}}")
        } else {
            line.append("],\"status\":{}}")
        }
    }

    /// The path as the log has it. A query holds secrets more often than a hint.
    private mutating func path(of record: RequestRecord) -> [UInt8] {
        target.removeAll(keepingCapacity: true)
        let sent = record.target
        let end = sent.firstIndex(of: UInt8(ascii: "?")) ?? sent.count
        TargetRedaction.append(sent.span.extracting(0..<end), to: &target)
        return target
    }
}

/// The label of a server, taken apart.
private struct UpstreamAddress {
    var host: String
    var port: UInt16?

    init(_ label: String) {
        guard !label.hasPrefix("unix:"), let colon = label.lastIndex(of: ":"),
            let port = UInt16(label[label.index(after: colon)...])
        else {
            host = label
            return
        }
        self.port = port
        let name = label[..<colon]
        host = String(name.hasPrefix("[") ? name.dropFirst().dropLast() : name)
    }
}

extension LineWriter {
    private mutating func begin(attribute name: StaticString) {
        append(",{\"key\":\"")
        append(name)
    }

    /// An attribute with text of unknown origin, at most `limit` bytes of it.
    fileprivate mutating func attribute(_ name: StaticString, text: [UInt8], limit: Int) {
        begin(attribute: name)
        append("\",\"value\":{\"stringValue\":\"")
        append(escaping: text.span, limit: limit)
        append("\"}}")
    }

    fileprivate mutating func attribute(_ name: StaticString, text: String, limit: Int) {
        begin(attribute: name)
        append("\",\"value\":{\"stringValue\":\"")
        append(escaping: text, limit: limit)
        append("\"}}")
    }

    /// An attribute with one of our own words.
    fileprivate mutating func attribute(_ name: StaticString, word: StaticString) {
        begin(attribute: name)
        append("\",\"value\":{\"stringValue\":\"")
        append(word)
        append("\"}}")
    }

    /// An attribute with a value that was rendered before, in its quotes.
    fileprivate mutating func attribute(_ name: StaticString, rendered: [UInt8]) {
        begin(attribute: name)
        append("\",\"value\":{\"stringValue\":")
        append(verbatim: rendered.span)
        append("}}")
    }

    /// An attribute with a number; in JSON a 64-bit one is a string.
    fileprivate mutating func attribute(_ name: StaticString, number: UInt64) {
        begin(attribute: name)
        append("\",\"value\":{\"intValue\":\"")
        append(decimal: number)
        append("\"}}")
    }
}

extension RequestFailure {
    /// The backend's side ended it.
    fileprivate var isOfUpstream: Bool { rawValue.hasPrefix("upstream_") }
}

extension RequestRecord {
    /// The version that the client spoke, as `network.protocol.version` has it.
    fileprivate var networkVersion: StaticString {
        switch protocolVersion.description {
        case "http/2": "2"
        case "http/1.0": "1.0"
        default: "1.1"
        }
    }
}

extension HTTP.Method {
    /// As `http.request.method` has it.
    fileprivate var attribute: StaticString {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .options: "OPTIONS"
        case .patch: "PATCH"
        case .connect: "CONNECT"
        case .trace: "TRACE"
        case .other: "_OTHER"
        }
    }

    /// As names of spans have it.
    fileprivate var spanName: StaticString { self == .other ? "HTTP" : attribute }
}
