internal import HTTP
internal import Proxy
internal import Synchronization
internal import TLS

/// The counters of one event loop. The loop writes them, the metrics page reads them, and nobody
/// waits: only what comes for the first time takes a lock.
///
/// Counters are kept by name. What a reload removes keeps its totals, and goes on when a later
/// configuration brings the name back.
public final class LoopMetrics: Sendable {
    private let routes = Mutex(NumberedNames())
    private let apps = Mutex(NumberedNames([RecorderTable.otherApp]))
    private let requests = TallyTable()
    private let upstreams = Mutex<[String: Histogram]>([:])
    private let upstreamEvents = Mutex<[String: WordCounters<UpstreamEvent>]>([:])
    private let rateLimitEvents = Mutex<[String: WordCounters<RateLimitEvent>]>([:])
    private let upstreamHandshakes = Mutex<[String: WordCounters<HandshakeKind>]>([:])
    private let listeners = Mutex<[String: ListenerCounters]>([:])
    /// Requests that did not end well.
    let failures = WordCounters<RequestFailure>()
    /// Requests that the parser refused.
    let malformed = WordCounters<MalformedMessage.Kind>()
    /// Tokens that were found in the cache.
    let cacheHits = Counter()
    /// Tokens that had to be verified.
    let cacheMisses = Counter()
    /// Debug secrets in place of tokens.
    let debugSecrets = Counter()
    /// Tokens whose signature was not computed, as too many bad ones came before.
    let verificationsRefused = Counter()
    /// Requests of trusted proxies with a `Forwarded` that is none.
    let malformedForwarded = Counter()
    /// What became of claims; a released one was claimed, too.
    let claims = WordCounters<ClaimResult>()
    /// How long they took.
    let claimDuration = Histogram(.claims)

    public init() {}

    /// The number of the label for no app, the same as for an app without an alias: the verdict tells
    /// them apart, and a label that is sometimes empty is sometimes not there.
    static let noApp: UInt32 = 0

    /// The number of a route in this loop; given at the first call.
    func route(_ name: String) -> UInt32 { routes.withLock { $0.number(of: name) } }

    /// The number of an app's label in this loop; given at the first call.
    func app(_ label: String) -> UInt32 { apps.withLock { $0.number(of: label) } }

    /// Counts a request. Only the loop's own thread may do that.
    @inline(__always)
    func count(_ outcome: RequestOutcome, microseconds: Int64, bytesOut: UInt64) {
        requests.add(outcome.key, 1, UInt64(clamping: microseconds), bytesOut)
    }

    /// Counts what few requests have. Only the loop's own thread may do that.
    ///
    /// - Parameters:
    ///   - bytesIn: Body bytes from the client.
    ///   - missingKeys: Requests without the key that the share goes by.
    func countRare(route: UInt32, bytesIn: UInt64, missingKeys: UInt64) {
        requests.add(RequestOutcome.rareSums(ofRoute: route).key, bytesIn, missingKeys, 0)
    }

    /// The durations of an upstream; made at the first call.
    func upstream(_ name: String) -> Histogram {
        upstreams.withLock { Self.find(name, in: &$0) { Histogram() } }
    }

    /// What happened to an upstream; made at the first call.
    func upstreamEvents(_ name: String) -> WordCounters<UpstreamEvent> {
        upstreamEvents.withLock { Self.find(name, in: &$0) { WordCounters() } }
    }

    /// What a route's rate limit did; made at the first call.
    func rateLimitEvents(_ route: String) -> WordCounters<RateLimitEvent> {
        rateLimitEvents.withLock { Self.find(route, in: &$0) { WordCounters() } }
    }

    /// TLS handshakes with an upstream; made at the first call.
    func upstreamHandshakes(_ name: String) -> WordCounters<HandshakeKind> {
        upstreamHandshakes.withLock { Self.find(name, in: &$0) { WordCounters() } }
    }

    /// The counters of a listener; made at the first call.
    func listener(_ name: String) -> ListenerCounters {
        listeners.withLock { Self.find(name, in: &$0) { ListenerCounters() } }
    }

    /// What was counted for each route, by its name.
    var allRoutes: [String: RouteTotals] {
        let tallies = requests.all
        // Asked for behind the tallies, so that every number there has its name here.
        let routeNames = routes.withLock { $0.names }
        let appNames = apps.withLock { $0.names }
        var totals = [RouteTotals](repeating: RouteTotals(), count: routeNames.count)
        for tally in tallies {
            let outcome = RequestOutcome(key: tally.key)
            guard totals.indices.contains(outcome.route), appNames.indices.contains(outcome.app)
            else { continue }
            totals[outcome.route].add(outcome, tally.sums, app: appNames[outcome.app])
        }
        return Dictionary(uniqueKeysWithValues: zip(routeNames, totals))
    }
    /// Requests by `CountedRequests`, for the history.
    var countedRequests: [UInt64: UInt64] {
        requests.all.reduce(into: [:]) { counts, tally in
            guard let counted = CountedRequests(RequestOutcome(key: tally.key)) else { return }
            counts[counted.key, default: 0] &+= tally.sums.0
        }
    }
    /// The routes by their numbers; ask behind what has numbers in it.
    var routeNames: [String] { routes.withLock { $0.names } }

    /// Time spent on upstreams, by name.
    var allUpstreams: [String: Histogram] { upstreams.withLock { $0 } }
    /// What happened to upstreams, by name.
    var allUpstreamEvents: [String: WordCounters<UpstreamEvent>] { upstreamEvents.withLock { $0 } }
    /// What rate limits did, by route.
    var allRateLimitEvents: [String: WordCounters<RateLimitEvent>] {
        rateLimitEvents.withLock { $0 }
    }
    /// TLS handshakes with upstreams, by name.
    var allUpstreamHandshakes: [String: WordCounters<HandshakeKind>] {
        upstreamHandshakes.withLock { $0 }
    }
    /// Connections, by listener.
    var allListeners: [String: ListenerCounters] { listeners.withLock { $0 } }

    private static func find<Value>(
        _ name: String, in values: inout [String: Value], make: () -> Value
    ) -> Value {
        if let value = values[name] { return value }
        let value = make()
        values[name] = value
        return value
    }
}

/// Whether a TLS handshake was one in full, or went on with an earlier session. The raw values are
/// label values.
enum HandshakeKind: String, CaseIterable {
    case full, resumed
}

/// What is counted for each listener.
final class ListenerCounters: Sendable {
    /// Connections that were accepted.
    let accepted = Counter()
    /// Connections with a request on the way.
    let active = Gauge()
    /// Connections between two requests, or before the first.
    let idle = Gauge()
    /// TLS handshakes in full.
    let secured = Counter()
    /// TLS handshakes that went on with an earlier session.
    let resumed = Counter()
    /// TLS connections for which the kernel encrypts what is sent.
    let sealedByKernel = Counter()
    /// TLS handshakes that failed.
    let failedHandshakes = WordCounters<TLSError.Kind>()
    /// Connections and requests that a limit refused or ended.
    let limits = WordCounters<Limit>()
    /// Idle connections that were closed to make room.
    let dismissed = Counter()
    /// HTTP/2 connections that were ended for what the client did.
    let http2Failures = WordCounters<HTTP2Failure>()
    /// How the waits for PROXY headers ended.
    let proxyHeaders = WordCounters<ProxyHeaderResult>()
}
