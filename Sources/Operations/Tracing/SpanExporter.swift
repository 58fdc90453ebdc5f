public import Configuration
internal import HTTP
public import Proxy
public import Reactor
internal import TLS

/// Sends spans to a collector: OTLP over HTTP, in JSON. An actor on the control loop, which serves no
/// requests; whatever the collector does, requests never wait for it.
///
/// One batch is under way at a time. A batch that the collector may take later (no connection, 429,
/// 502, 503, 504) is sent again, after growing pauses; meanwhile spans wait, up to the queue's
/// limit.
public actor SpanExporter {
    /// How often to do what; other than the defaults only in tests.
    struct Intervals: Sendable {
        /// Between two looks for spans, unless a batch is full before.
        var rest: Duration = .seconds(1)
        /// After a failure; it doubles with each.
        var firstPause: Duration = .seconds(1)
        var longestPause: Duration = .seconds(30)
    }

    /// A batch that failed so often is given up.
    private static let mostAttempts = 8
    /// `Retry-After` may ask for as much.
    private static let longestObedience: Int64 = 60

    private nonisolated let loop: EventLoop
    private let version: String
    private let log: any EventLog
    private let intervals: Intervals
    /// Where the loops put spans.
    public nonisolated let queue = SpanQueue()
    private let waiter: Waiter
    private let stopWaiter: Waiter
    private var settings: Tracing?
    private var pool: HTTPPool?
    private var target = ""
    /// The batch that is being sent, and how often that failed.
    private var batch: SpanQueue.Batch?
    private var attempts = 0
    private var isWorking = false
    /// Everything must have been sent by then; nil while nobody asked for the end.
    private var endDeadline: MonotonicInstant?
    private var isFailing = false

    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// - Parameter version: Of this program.
    public init(loop: EventLoop, version: String, log: any EventLog) {
        self.init(loop: loop, version: version, log: log, intervals: Intervals())
    }

    init(loop: EventLoop, version: String, log: any EventLog, intervals: Intervals) {
        self.loop = loop
        self.version = version
        self.log = log
        self.intervals = intervals
        waiter = Waiter(loop: loop)
        stopWaiter = Waiter(loop: loop)
    }

    /// Exports as `next` says from now on; with nil not at all, and what waits is dropped.
    public func adopt(_ next: Tracing?) {
        if next == settings { return }
        settings = next
        pool?.close()
        pool = nil
        isFailing = false
        // The failures, and the pause after them, were another collector's.
        attempts = 0
        waiter.wake()
        guard let next else {
            batch = nil
            return queue.open(limit: 0, onFull: {})
        }
        guard let url = try? HTTPURL(next.url) else {
            log.log(.error, "spans are not exported", [("otlp", "is no URL")])
            return queue.open(limit: 0, onFull: {})
        }
        target = url.target
        var limits = HTTPPool.Limits()
        limits.connections = 1
        limits.rest = .seconds(5)
        var origin = HTTPOrigin(
            url, trust: next.authorityFile.map { .certificates(inFile: $0) } ?? .system)
        switch next.egressProxy {
        case .tcp(let host, let port): origin.egressProxy = .tcp(host: host, port: port)
        case .unix(let path): origin.egressProxy = .unix(path: path)
        case nil: break
        }
        pool = HTTPPool(loop: loop, origin: origin, version: version, limits: limits)
        queue.open(limit: next.queue) { [weak self] in
            guard let self else { return }
            Task(executorPreference: self.loop) { await self.hurry() }
        }
        if !isWorking && endDeadline == nil {
            isWorking = true
            Task.immediate(executorPreference: loop) { await work() }
        }
    }

    /// Sends what waits, and ends. What is not sent within `limit` is lost, and counted.
    public func stop(within limit: Duration) async {
        let deadline = loop.now.advanced(by: limit)
        endDeadline = deadline
        waiter.wake()
        while isWorking && loop.now < deadline {
            _ = await stopWaiter.wait(until: deadline)
        }
        stopWaiter.invalidate()
        adopt(nil)
    }

    private func hurry() {
        waiter.wake()
    }

    // MARK: Work

    private func work() async {
        var pause = intervals.rest
        while settings != nil {
            if endDeadline == nil { await sleep(for: pause) }
            pause = await exportAll() ?? intervals.rest
            if endDeadline != nil { break }
        }
        if let batch { queue.countFailed(batch.count) }
        batch = nil
        while let rest = queue.next() { queue.countFailed(rest.count) }
        isWorking = false
        waiter.invalidate()
        stopWaiter.wake()
    }

    /// A full batch ends the rest between two looks, but no pause after a failure.
    private func sleep(for pause: Duration) async {
        let end = loop.now.advanced(by: pause)
        while await waiter.wait(until: end) == .ready, attempts > 0, endDeadline == nil {}
    }

    /// - Returns: how long to wait before the next attempt; nil when all was sent.
    private func exportAll() async -> Duration? {
        while let next = batch ?? queue.next() {
            batch = next
            switch await send(next) {
            case .taken(let rejected):
                queue.countExported(next.count - rejected)
                queue.countFailed(rejected)
                done()
                noteRecovery()
            case .refused(let reason):
                noteFailure(reason, isFinal: true)
                queue.countFailed(next.count)
                done()
            case .later(let reason, let wish):
                // Another collector, or none, is asked now.
                if batch == nil { return nil }
                attempts += 1
                noteFailure(reason, isFinal: false)
                if attempts >= Self.mostAttempts {
                    queue.countFailed(next.count)
                    done()
                    continue
                }
                let doubled = intervals.firstPause * Double(1 << min(attempts - 1, 16))
                let pause = min(doubled, intervals.longestPause) * Double.random(in: 0.8...1.2)
                return max(pause, wish ?? .zero)
            }
        }
        return nil
    }

    private func done() {
        batch = nil
        attempts = 0
    }

    private enum Outcome {
        /// All but so many spans.
        case taken(rejected: Int)
        /// They never will be.
        case refused(String)
        /// They may be later; how long the collector wants to be left alone.
        case later(String, Duration?)
    }

    private func send(_ batch: SpanQueue.Batch) async -> Outcome {
        guard let settings, let pool else { return .refused("there is no collector") }
        var deadline = loop.now.advanced(by: settings.timeout)
        if let endDeadline { deadline = min(deadline, endDeadline) }
        var request = HTTPPostRequest(
            target, contentType: "application/json",
            body: ExportRequest.body(batch, settings, version: version), deadline: deadline)
        request.fields = settings.headers
        do throws(HTTPClientError) {
            return Self.read(try await pool.post(request), batch)
        } catch {
            return .later(error.description, nil)
        }
    }

    /// OTLP 1.0, sections "OTLP/HTTP Response" and "Failures".
    private static func read(_ response: HTTPResponse, _ batch: SpanQueue.Batch) -> Outcome {
        switch response.status {
        case 200...299:
            return .taken(rejected: min(batch.count, ExportRequest.rejected(response.body)))
        case 429, 502, 503, 504:
            let wish = response.value(of: "retry-after").flatMap { Int64($0) } ?? 0
            let pause = Duration.seconds(max(0, min(wish, longestObedience)))
            return .later("the collector answered \(response.status)", pause)
        default:
            return .refused("the collector answered \(response.status)")
        }
    }

    // MARK: Notices

    private func noteFailure(_ reason: String, isFinal: Bool) {
        if isFailing { return }
        isFailing = true
        log.log(
            .warning, "spans cannot be exported",
            [
                ("otlp", redacted(settings?.url ?? "")), ("reason", reason),
                ("spans", isFinal ? "dropped" : "waiting"),
                ("hint", "check otlp, headers and ca of [tracing]"),
            ])
    }

    private func noteRecovery() {
        if !isFailing { return }
        isFailing = false
        log.log(.info, "spans are exported again", [("otlp", redacted(settings?.url ?? ""))])
    }
}
