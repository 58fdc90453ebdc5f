internal import Configuration
internal import HTTP
internal import Policy
internal import Proxy
internal import Replay
internal import TLS

/// Writes the access log: one line for each request, however it ended.
///
/// It runs once a request on the event loop, so it neither allocates nor blocks, and takes names
/// that were rendered when the configuration was read. Fields that have nothing to say are left
/// out. Text from the client is bounded, escaped, and rid of tokens (pitfall O5).
struct AccessLine {
    /// The longest target that redaction gives, and the ellipsis behind it.
    private static let targetLimit = TargetRedaction.longest + 3

    private var timestamp = Timestamp()
    /// The target as it may be shown; kept for its memory.
    private var target: [UInt8] = []

    /// Whether `access` wants a line for this request.
    static func isWanted(_ record: RequestRecord, _ access: Log.Access) -> Bool {
        switch access {
        case .all: true
        case .off: false
        case .rejected:
            record.action == .reject || record.action == .wouldReject || record.failure != nil
                || record.limit.contains(.wouldReject)
        }
    }

    /// Writes the line of `record`, without its line feed.
    mutating func append(
        _ record: RequestRecord, names: ConfigurationNames, to line: inout LineWriter
    ) {
        let format = names.format
        let endedAt = record.startedAt.addingReportingOverflow(record.totalMicroseconds)
        line.begin(
            format, at: endedAt.overflow ? record.startedAt : endedAt.partialValue, level: .info,
            timestamp: &timestamp)
        line.field("msg", word: "request", format)
        appendRequest(record, format, to: &line)
        appendVerdict(record, names, to: &line)
        appendOutcome(record, names, to: &line)
        line.end(format)
    }

    @inline(__always)
    private mutating func appendRequest(
        _ record: RequestRecord, _ format: Log.Format, to line: inout LineWriter
    ) {
        line.field("request_id", text: record.requestID, limit: 128, format)
        line.field("client", text: record.clientAddress, limit: 64, format)
        if !record.peerAddress.isEmpty {
            line.field("peer", text: record.peerAddress, limit: 64, format)
        }
        line.field("listener", text: record.listener, limit: 256, format)
        line.field("method", text: record.methodName, limit: 32, format)
        line.field("host", text: record.host, limit: 256, format)
        redact(record.target)
        line.field("target", text: target, limit: Self.targetLimit, format)
        line.field("protocol", word: record.protocolVersion, format)
        if let trace = record.trace { append(trace, format, to: &line) }
        if let session = record.session { append(session, format, to: &line) }
        let userAgent = record.userAgent
        if !userAgent.isEmpty {
            line.field("user_agent", text: userAgent, limit: 256, format)
        }
    }

    @inline(never)
    private func append(_ trace: RequestTrace, _ format: Log.Format, to line: inout LineWriter) {
        line.field("trace_id", hexadecimal: trace.traceID.high, trace.traceID.low, format)
        line.field("span_id", hexadecimal: trace.spanID, nil, format)
    }

    @inline(never)
    private func append(_ session: TLSSession, _ format: Log.Format, to line: inout LineWriter) {
        line.field("tls_version", word: session.version, format)
        let serverName = session.serverName
        if !serverName.isEmpty { line.field("sni", text: serverName, limit: 256, format) }
        if let client = session.client {
            line.field("client_subject", text: client.subject, limit: 512, format)
            line.field("client_fingerprint", text: client.fingerprint, limit: 64, format)
        }
    }

    private mutating func redact(_ target: [UInt8]) {
        self.target.removeAll(keepingCapacity: true)
        TargetRedaction.append(target.span, to: &self.target)
    }

    @inline(__always)
    private func appendVerdict(
        _ record: RequestRecord, _ names: ConfigurationNames, to line: inout LineWriter
    ) {
        let format = names.format
        if let route = names.route(record.route) { line.field("route", rendered: route, format) }
        if let verdict = record.verdict {
            line.field("verdict", word: verdict.word, format)
            if let reason = verdict.reason { line.field("reason", word: reason, format) }
        }
        if let action = record.action { line.field("action", word: action.word, format) }
        if let code = record.code { line.field("code", word: code.rawValue, format) }
        if record.token != nil { line.field("app", rendered: names.app(record.app), format) }
        if record.isCachedVerdict { line.flag("cached", format) }
        if !record.limit.isEmpty { append(record.limit, format, to: &line) }
        if record.isShareKeyMissing { line.flag("share_key_missing", format) }
        if record.isDebugSecret { line.flag("debug_secret", format) }
        if record.isForwardedMalformed { line.flag("forwarded_malformed", format) }
        if let claim = record.claim {
            let word = record.isClaimReleased ? ClaimResult.released.rawValue : claim.rawValue
            line.field("claim", word: word, format)
            if let failure = record.claimFailure {
                line.field("claim_failure", word: failure.rawValue, format)
            }
        }
    }

    @inline(never)
    private func append(_ limit: LimitNote, _ format: Log.Format, to line: inout LineWriter) {
        if limit.contains(.rejected) {
            line.field("rate_limit", word: Action.reject.word, format)
        } else if limit.contains(.wouldReject) {
            line.field("rate_limit", word: Action.wouldReject.word, format)
        }
        if limit.contains(.keyMissing) { line.flag("rate_limit_key_missing", format) }
    }

    @inline(__always)
    private func appendOutcome(
        _ record: RequestRecord, _ names: ConfigurationNames, to line: inout LineWriter
    ) {
        let format = names.format
        line.field("status", number: UInt64(record.status), format)
        line.field("bytes_in", number: record.bytesIn, format)
        line.field("bytes_out", number: record.bytesOut, format)
        line.field("duration_us", number: UInt64(clamping: record.totalMicroseconds), format)
        line.field("verify_us", number: UInt64(clamping: record.verifyMicroseconds), format)
        if record.claim != nil {
            line.field("claim_us", number: UInt64(clamping: record.claimMicroseconds), format)
        }
        if let duration = record.upstreamMicroseconds {
            line.field("upstream_us", number: UInt64(clamping: duration), format)
        }
        if let upstream = names.upstream(record.upstream) {
            line.field("upstream", rendered: upstream, format)
            let server = record.upstreamServer
            if !server.isEmpty { line.field("upstream_server", text: server, limit: 128, format) }
        }
        if let failure = record.failure { line.field("failure", word: failure.rawValue, format) }
        if let kind = record.malformed { line.field("malformed", word: kind.rawValue, format) }
    }
}

extension Action {
    /// The word for `action`; static, so that no string is made of it.
    var word: StaticString {
        switch self {
        case .allow: "allow"
        case .wouldReject: "would_reject"
        case .reject: "reject"
        }
    }
}
