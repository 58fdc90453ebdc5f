internal import Attestation
internal import Configuration
internal import Policy
public import Proxy
internal import TLS

/// Turns the records of one event loop into counters and access-log lines.
///
/// It belongs to its loop: nothing in it is shared but the counters and the writer, and in steady
/// state a request costs neither a lock nor an allocation.
public final class WorkerRecorder: RequestRecorder {
    /// How often a loop explains what a debug secret is.
    private static let explanationInterval: Int64 = 10_000_000

    private let metrics: LoopMetrics
    private let writer: LogWriter
    private let events: any EventLog
    private var accessLine = AccessLine()
    private var chunk = LogChunk()
    /// The newest first. The old one is needed as long as a reload drains.
    private var tables: [RecorderTable] = []
    private var listeners: [(name: String, counters: ListenerCounters)] = []
    private let spans: SpanQueue?
    private var spanLine = SpanLine()
    /// Spans that were not handed over yet; made when there is one.
    private var spanChunk: LogChunk?
    private var explainedAt = Int64.min
    private var unexplained = 0

    /// Makes the recorder of one loop.
    ///
    /// - Parameters:
    ///   - metrics: Counters that nobody else writes.
    ///   - writer: Where access-log lines go.
    ///   - events: Where a debug secret is explained.
    ///   - spans: Where spans of recorded traces go.
    public init(
        metrics: LoopMetrics, writer: LogWriter, events: any EventLog, spans: SpanQueue? = nil
    ) {
        self.spans = spans
        self.metrics = metrics
        self.writer = writer
        self.events = events
    }

    public func record(_ record: RequestRecord, serving: ServingConfiguration) {
        let table = table(for: serving)
        count(record, table)
        if record.isDebugSecret { explainDebugSecret(record, table) }
        if AccessLine.isWanted(record, table.access) { append(record, table) }
        if let trace = record.trace, trace.isSampled { appendSpans(record, trace, table) }
    }

    public func connection(_ event: ConnectionEvent, listener: String) {
        let counters = counters(of: listener)
        switch event {
        case .opened:
            counters.accepted.add()
            counters.idle.add(1)
        case .becameActive:
            counters.idle.add(-1)
            counters.active.add(1)
        case .becameIdle:
            counters.active.add(-1)
            counters.idle.add(1)
        case .closed(let wasActive):
            if wasActive { counters.active.add(-1) } else { counters.idle.add(-1) }
        case .secured(let isResumed, let byKernel):
            if isResumed { counters.resumed.add() } else { counters.secured.add() }
            if byKernel { counters.sealedByKernel.add() }
        case .handshakeFailed(let kind):
            counters.failedHandshakes.count(kind)
            if kind == .timedOut { counters.limits.count(.headerTimeout) }
        case .limited(let limit): counters.limits.count(limit)
        case .dismissed: counters.dismissed.add()
        case .http2Failed(let failure): counters.http2Failures.count(failure)
        case .proxyHeader(let result):
            counters.proxyHeaders.count(result)
            if result == .timedOut { counters.limits.count(.headerTimeout) }
        }
    }

    public func upstream(_ event: UpstreamEvent, _ name: String) {
        // Rare, or the price of an upstream that is in trouble.
        metrics.upstreamEvents(name).count(event)
    }

    public func secured(upstream name: String, isResumed: Bool) {
        metrics.upstreamHandshakes(name).count(isResumed ? .resumed : .full)
    }

    public func flush() {
        writer.enqueue(&chunk)
        if spanChunk != nil { flushSpans() }
    }

    private func flushSpans() {
        guard let spans, var chunk = spanChunk else { return }
        // Out of its place while it is emptied: two owners would copy it.
        spanChunk = nil
        spans.enqueue(&chunk)
        spanChunk = chunk
    }

    private func appendSpans(_ record: RequestRecord, _ trace: RequestTrace, _ table: RecorderTable)
    {
        guard let spans else { return }
        let names = table.spanNames
        var chunk = spanChunk ?? LogChunk()
        spanChunk = nil
        if !chunk.hasRoomForLine { spans.enqueue(&chunk) }
        _ = chunk.appendLine {
            spanLine.appendServer(record, trace, names, to: &$0)
            $0.append(",")
        }
        if record.upstreamMicroseconds != nil {
            if !chunk.hasRoomForLine { spans.enqueue(&chunk) }
            _ = chunk.appendLine {
                spanLine.appendClient(record, trace, names, to: &$0)
                $0.append(",")
            }
        }
        spanChunk = chunk
    }

    private func append(_ record: RequestRecord, _ table: RecorderTable) {
        if !chunk.hasRoomForLine { flush() }
        let fits = chunk.appendLine { accessLine.append(record, names: table.names, to: &$0) }
        // The bounds of the fields add up to less than a line's; should that ever change, the loss
        // must show.
        if !fits { writer.countDroppedLine() }
    }

    private func count(_ record: RequestRecord, _ table: RecorderTable) {
        let route = table.route(record.route)
        // How long a WebSocket lives says nothing about how fast anybody answers.
        let microseconds = record.totalMicroseconds - record.tunnelMicroseconds
        let outcome = RequestOutcome(
            route: route,
            app: record.token == nil ? LoopMetrics.noApp : table.app(record.app),
            verdict: record.verdict, action: record.action, status: record.status,
            microseconds: microseconds)
        metrics.count(
            outcome, microseconds: microseconds, bytesOut: record.bytesOut)
        if record.bytesIn > 0 || record.isShareKeyMissing {
            metrics.countRare(
                route: route, bytesIn: record.bytesIn,
                missingKeys: record.isShareKeyMissing ? 1 : 0)
        }
        if let duration = record.upstreamMicroseconds, let upstream = record.upstream {
            table.duration(of: upstream)?.record(microseconds: duration)
        }
        if let failure = record.failure { count(failure, record) }
        if let kind = record.malformed { metrics.malformed.count(kind) }
        if record.isCachedVerdict {
            metrics.cacheHits.add()
        } else if record.verdict?.isOfVerification == true {
            metrics.cacheMisses.add()
        }
        if record.isDebugSecret { metrics.debugSecrets.add() }
        if !record.limit.isEmpty { count(record.limit, table, record) }
        if record.verdict == .unavailable(.verificationLimit) { metrics.verificationsRefused.add() }
        if record.isForwardedMalformed { metrics.malformedForwarded.add() }
        if let claim = record.claim { count(claim, record) }
    }

    private func count(_ failure: RequestFailure, _ record: RequestRecord) {
        metrics.failures.count(failure)
        if let limit = Limit(record) { counters(of: record.listener).limits.count(limit) }
    }

    private func count(_ limit: LimitNote, _ table: RecorderTable, _ record: RequestRecord) {
        guard let events = table.rateLimitEvents(of: record.route) else { return }
        if limit.contains(.rejected) { events.count(.reject) }
        if limit.contains(.wouldReject) { events.count(.wouldReject) }
        if limit.contains(.keyMissing) { events.count(.keyMissing) }
    }

    private func count(_ claim: ClaimResult, _ record: RequestRecord) {
        metrics.claims.count(claim)
        if record.isClaimReleased { metrics.claims.count(.released) }
        metrics.claimDuration.record(microseconds: record.claimMicroseconds)
    }

    private func table(for serving: ServingConfiguration) -> RecorderTable {
        if let newest = tables.first, newest.serves(serving) { return newest }
        if let older = tables.first(where: { $0.serves(serving) }) { return older }
        let table = RecorderTable(serving.configuration, metrics: metrics)
        tables.insert(table, at: 0)
        if tables.count > 2 { tables.removeLast() }
        return table
    }

    private func counters(of listener: String) -> ListenerCounters {
        for known in listeners where known.name == listener { return known.counters }
        let counters = metrics.listener(listener)
        listeners.append((listener, counters))
        return counters
    }

    private func explainDebugSecret(_ record: RequestRecord, _ table: RecorderTable) {
        let now = record.startedAt
        // A clock that was set back must not silence the explanation.
        let isDue =
            explainedAt == .min || now < explainedAt
            || now &- explainedAt >= Self.explanationInterval
        guard isDue else {
            unexplained += 1
            return
        }
        events.log(
            .warning,
            "a Firebase debug secret (UUID) was sent in X-Firebase-AppCheck; an app must exchange "
                + "it for a token at Firebase and send that: register the secret in the Firebase "
                + "console under App Check, Manage debug tokens, and use the SDK's debug provider",
            [
                (name: "route", value: table.routeName(record.route)),
                (name: "client", value: record.clientAddress),
                (name: "not_reported", value: String(unexplained)),
            ])
        explainedAt = now
        unexplained = 0
    }
}

extension Verdict {
    /// Whether the token went through verification, so that the cache was asked about it.
    fileprivate var isOfVerification: Bool {
        switch self {
        case .verified, .appNotAllowed, .notLimitedUse, .reused, .unavailable(.replayStore): true
        case .invalid(.malformed), .invalid(.duplicate), .invalid(.inURL): false
        case .invalid: true
        case .unavailable(.verificationLimit): true
        case .missing, .attestationFailed, .unavailable(.keys), .exempt: false
        }
    }
}
