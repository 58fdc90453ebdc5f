internal import HTTP
internal import Proxy
internal import Synchronization

/// The counters of one event loop. The loop writes them, the metrics page reads them, and nobody
/// waits: only finding a route's counters for the first time takes a lock.
///
/// Counters are kept by name. What a reload removes keeps its totals, and goes on when a later
/// configuration brings the name back.
public final class LoopMetrics: Sendable {
    private let routes = Mutex<[String: RouteCounters]>([:])
    private let upstreams = Mutex<[String: Histogram]>([:])
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
    /// What became of claims; a released one was claimed, too.
    let claims = WordCounters<ClaimResult>()
    /// How long they took.
    let claimDuration = Histogram(.claims)

    public init() {}

    /// The counters of a route; made at the first call.
    func route(_ name: String) -> RouteCounters {
        routes.withLock { Self.find(name, in: &$0) { RouteCounters() } }
    }

    /// The durations of an upstream; made at the first call.
    func upstream(_ name: String) -> Histogram {
        upstreams.withLock { Self.find(name, in: &$0) { Histogram() } }
    }

    /// The counters of a listener; made at the first call.
    func listener(_ name: String) -> ListenerCounters {
        listeners.withLock { Self.find(name, in: &$0) { ListenerCounters() } }
    }

    /// All of them, for the metrics page.
    var allRoutes: [String: RouteCounters] { routes.withLock { $0 } }
    /// Time spent on upstreams, by name.
    var allUpstreams: [String: Histogram] { upstreams.withLock { $0 } }
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

/// What is counted for each route.
final class RouteCounters: Sendable {
    /// Requests whose token told no app.
    let withoutApp = VerdictCells()
    private let byApp = Mutex<[String: VerdictCells]>([:])
    /// From a request's first byte to the end of its answer.
    let duration = Histogram()
    /// Body bytes from clients.
    let bytesIn = Counter()
    /// Body bytes to clients.
    let bytesOut = Counter()
    /// Requests without the key that the share goes by.
    let shareKeyMissing = Counter()
    /// By the first digit of the status; 0 is a request that got no answer.
    let responses = InlineArray<6, Counter> { _ in Counter() }

    /// The cells of an app's alias; made at the first call.
    func app(_ alias: String) -> VerdictCells {
        byApp.withLock { cells in
            if let found = cells[alias] { return found }
            let made = VerdictCells()
            cells[alias] = made
            return made
        }
    }

    /// Requests by app label; the empty label is no app.
    var allApps: [String: VerdictCells] {
        var all = byApp.withLock { $0 }
        all[""] = withoutApp
        return all
    }
}

/// What is counted for each listener.
final class ListenerCounters: Sendable {
    /// Connections that were accepted.
    let accepted = Counter()
    /// Connections with a request on the way.
    let active = Gauge()
    /// Connections between two requests, or before the first.
    let idle = Gauge()
}
