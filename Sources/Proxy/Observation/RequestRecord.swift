public import Attestation
public import HTTP
public import Policy
public import Replay
public import TLS

/// How a request ended when it did not end with a complete answer from the upstream or from policy.
public enum RequestFailure: String, Sendable, CaseIterable {
    // The client's side.
    case malformed
    case clientAborted = "client_aborted"
    case clientTimeout = "client_timeout"
    case bodyTooLarge = "body_too_large"
    case headerTimeout = "header_timeout"
    /// The body came more slowly than it may.
    case bodyRate = "body_rate"
    /// The answer was taken more slowly than it may be.
    case answerRate = "answer_rate"
    case misdirected
    case rateLimited = "rate_limited"
    // Ours.
    /// Memory was short.
    case memoryLimit = "memory_limit"
    /// There was no descriptor for a connection to the upstream.
    case openFiles = "open_files"
    case noRoute = "no_route"
    /// It was still under way when the time for draining was over.
    case drained
    case webSocketNotSupported = "websocket_not_supported"
    /// Neither side of a WebSocket sent anything for too long.
    case webSocketIdle = "websocket_idle"
    /// A WebSocket was still open when the time for draining was over.
    case webSocketDrained = "websocket_drained"
    // The upstream's side: one word per way to fail.
    case upstreamConnect = "upstream_connect"
    case upstreamConnectTimeout = "upstream_connect_timeout"
    case upstreamHeaderTimeout = "upstream_header_timeout"
    case upstreamIdleTimeout = "upstream_idle_timeout"
    case upstreamReset = "upstream_reset"
    case upstreamProtocol = "upstream_protocol"
    case upstreamUnresolved = "upstream_unresolved"
    case upstreamTLS = "upstream_tls"
    case upstreamUnhealthy = "upstream_unhealthy"
    case upstreamQueueFull = "upstream_queue_full"
    case upstreamQueueTimeout = "upstream_queue_timeout"
}

/// Everything that the access log and the metrics say about one request. One object per exchange,
/// reused; it is handed to the recorder exactly once for each request, however that ended.
public final class RequestRecord {
    /// Wall clock at the first byte of the request, microseconds since 1970.
    public var startedAt: Int64 = 0
    /// What the TLS handshake of the connection found out; nil on plain ones.
    public var session: TLSSession?
    /// The label of the listener that the request came in by.
    public var listener = ""
    /// The client's address as policy uses it: text, without port.
    public var clientAddress = ""
    /// Where the connection came from, when that is not the client; else empty.
    public var peerAddress = ""
    /// A trusted proxy's `Forwarded` did not follow the grammar, so nothing in it was believed.
    public var isForwardedMalformed = false
    /// Value of X-Request-Id: ours, or the one a trusted proxy sent.
    public var requestID: [UInt8] = []
    /// The method, for comparisons; `other` for an unknown one.
    public var method: Method = .other
    /// The method as the client sent it.
    public var methodName: [UInt8] = []
    /// Target as the client sent it; logs must redact it.
    public var target: [UInt8] = []
    /// Canonical host without port (`RequestTarget.host`); empty when there was none.
    public var host: [UInt8] = []
    /// Value of User-Agent as sent; empty when there was none.
    public var userAgent: [UInt8] = []
    /// The version that the client spoke, as the log names it: "http/1.0", "http/1.1" or
    /// "http/2".
    public var protocolVersion: StaticString = "http/1.1"
    /// Index of the route, or nil when none was chosen.
    public var route: Int?
    /// What policy was told about the token; nil when the request ended before that.
    public var verdict: Verdict?
    /// What policy decided; nil when it was not asked.
    public var action: Action?
    /// The code of a rejection; nil for every other end.
    public var code: RejectionCode?
    /// The claims of a verified token.
    public var token: VerifiedToken?
    /// Configured app of `token`; nil is `other` where there is one, else no app at all.
    public var app: AppIndex?
    /// What the route's rate limit had to do with it.
    public var limit: LimitNote = []
    /// The sticky key of an enforced route was not there.
    public var isShareKeyMissing = false
    /// A bare debug secret stood where a token belongs.
    public var isDebugSecret = false
    /// Status sent to the client; 0 when none was.
    public var status: UInt16 = 0
    /// Body bytes received from and sent to the client.
    public var bytesIn: UInt64 = 0
    public var bytesOut: UInt64 = 0
    /// Index of the upstream that was asked; nil when none was.
    public var upstream: Int?
    /// The address of the server that was asked last, as text; empty when none was.
    public var upstreamServer = ""
    /// Why the request did not end well.
    public var failure: RequestFailure?
    /// The parser's word when `failure` is `malformed`.
    public var malformed: MalformedMessage.Kind?
    /// Microseconds from the first byte of the request to the end of the answer, or of the
    /// WebSocket.
    public var totalMicroseconds: Int64 = 0
    /// Microseconds spent on verification; 0 from the cache.
    public var verifyMicroseconds: Int64 = 0
    /// Microseconds from choosing an upstream to the end of its answer, or to the beginning of the
    /// WebSocket; nil when none was asked.
    public var upstreamMicroseconds: Int64?
    /// Microseconds of the total for which a WebSocket was open; 0 for every other request.
    public var tunnelMicroseconds: Int64 = 0
    /// The verdict came from the cache of verified tokens.
    public var isCachedVerdict = false
    /// What the claim store said; nil when it was not asked.
    public var claim: ClaimResult?
    /// Why the store could not be asked, when `claim` is `unavailable`.
    public var claimFailure: StoreFailure?
    /// The claim was taken back: the token is as good as before.
    public var isClaimReleased = false
    /// Microseconds that the claim took.
    public var claimMicroseconds: Int64 = 0

    /// The request's place in a trace; nil where requests are not traced.
    public var trace: RequestTrace?

    /// A record for the first request.
    public init() {}

    /// Readies the object for the next request, whoever sends it. Listener, addresses and session are
    /// set anew by whoever begins it.
    public func reset() {
        method = .other
        // Empty where nothing is logged, and emptying them is a call each.
        if !methodName.isEmpty {
            methodName.removeAll(keepingCapacity: true)
            target.removeAll(keepingCapacity: true)
            host.removeAll(keepingCapacity: true)
            userAgent.removeAll(keepingCapacity: true)
        }
        protocolVersion = "http/1.1"
        if !peerAddress.isEmpty { peerAddress = "" }
        isForwardedMalformed = false
        if trace != nil { trace = nil }
        route = nil
        verdict = nil
        action = nil
        code = nil
        token = nil
        app = nil
        limit = []
        isShareKeyMissing = false
        isDebugSecret = false
        status = 0
        bytesIn = 0
        bytesOut = 0
        upstream = nil
        upstreamServer = ""
        failure = nil
        malformed = nil
        totalMicroseconds = 0
        verifyMicroseconds = 0
        upstreamMicroseconds = nil
        tunnelMicroseconds = 0
        isCachedVerdict = false
        claim = nil
        claimFailure = nil
        isClaimReleased = false
        claimMicroseconds = 0
    }
}
