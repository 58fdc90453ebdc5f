public import Attestation
public import Policy

/// A checked configuration. Nothing in it can be wrong any more; it is immutable and shared by all
/// event loops.
public struct Configuration: Sendable {
    /// `[server]`.
    public var server = Server()
    /// `[log]`.
    public var log = Log()
    /// `[admin]`; nil when there is none.
    public var admin: Admin?
    /// `[tracing]`; nil when there is none.
    public var tracing: Tracing?
    /// `[replay]`.
    public var replay = ReplaySettings()
    /// In file order, at least one.
    public var listeners: [Listener] = []
    /// In file order; `Route` and verdicts refer to projects by index.
    public var projects: [ProjectSource] = []
    /// In file order; routes refer to upstreams by index.
    public var upstreams: [Upstream] = []
    /// Every `[[route]]`, ready to be searched.
    public var routes: RouteTable

    /// A configuration with the defaults everywhere else.
    public init(routes: RouteTable) {
        self.routes = routes
    }
}

/// `[server]`
public struct Server: Sendable, Equatable {
    /// Event loops; 0 is one per CPU that the process may use.
    public var workers = 0
    /// Where key sets are kept for the next start.
    public var stateDirectory = "/var/lib/portcullis"
    /// How long SIGTERM and a reload wait for requests in flight.
    public var drainTimeout: Duration = .seconds(30)
    /// How long connections are still accepted after SIGTERM, while `/readyz` says no.
    public var drainDelay: Duration = .zero
    /// How long a new binary may take to be ready before it is given up.
    public var upgradeTimeout: Duration = .seconds(60)
    /// Bytes of verified tokens that one loop may remember.
    public var tokenCacheBytes = 32 << 20
    /// Client connections of all listeners together; nil: as the limit of open files allows.
    public var maxConnections: Int?
    /// When load is shed.
    public var memoryLimit = MemoryLimit.auto
    /// How many bad tokens of one client network may have their signatures computed.
    public var verifications = VerificationLimit()

    public init() {}
}

/// `[log]`
public struct Log: Sendable, Equatable {
    public enum Level: String, Sendable, CaseIterable, Comparable {
        case error, warning, info, debug

        public static func < (left: Level, right: Level) -> Bool {
            left.order < right.order
        }

        private var order: Int {
            switch self {
            case .error: 0
            case .warning: 1
            case .info: 2
            case .debug: 3
            }
        }
    }
    public enum Format: String, Sendable, CaseIterable { case json, text }
    public enum Access: String, Sendable, CaseIterable { case all, rejected, off }

    /// Lines below it are not written.
    public var level: Level = .info
    /// Of access and event lines alike.
    public var format: Format = .json
    /// Which requests get a line.
    public var access: Access = .all

    public init() {}
}

/// `[admin]`
public struct Admin: Sendable, Equatable {
    /// Where metrics and probes are answered.
    public var listen: ListenAddress
    /// Holds the bearer token that changes need; nil: nothing can be changed.
    public var tokenFile: String?
    /// That token; nil also when the file could not be read.
    public var token: AdminToken?

    public init(listen: ListenAddress, tokenFile: String?, token: AdminToken? = nil) {
        self.listen = listen
        self.tokenFile = tokenFile
        self.token = token
    }
}

/// Where a socket listens or connects.
public enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// `host` is an IPv4 or IPv6 literal (without brackets), or a name where connecting is meant.
    case tcp(host: String, port: UInt16)
    case unix(path: String)

    public var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

/// `[[listener]]`
public struct Listener: Sendable, Equatable {
    /// The label in metrics: the address as the file has it.
    public var name: String
    /// Where clients connect.
    public var listen: ListenAddress
    /// Networks whose forwarding fields and PROXY headers are believed. Default: nobody.
    public var trustedProxies: [IPNetwork] = []
    /// `unix:` in `trusted_proxies`: whoever connects to a local socket is believed as well.
    public var trustsLocalPeers = false
    /// Which forwarding fields these proxies write; the others are removed.
    public var forwardingFields = ForwardingFields.xForwarded
    /// `proxy_protocol`: every connection begins with a PROXY header.
    public var expectsProxyHeader = false
    /// `protocols`: what clients may speak. HTTP/2 on a listener without TLS is for clients that know
    /// beforehand (RFC 9113, section 3.3).
    public var protocols: Set<ClientProtocol> = [.http1]
    /// What a client may cost.
    public var limits = ListenerLimits()
    /// Connections are encrypted; nil for plain text.
    public var tls: ListenerTLS?

    public init(name: String, listen: ListenAddress) {
        self.name = name
        self.listen = listen
    }
}

/// What a client may speak; the raw values are those of ALPN (RFC 7301).
public enum ClientProtocol: String, Sendable, CaseIterable {
    case http1 = "http/1.1"
    case http2 = "h2"
}

/// `memory_limit` of `[server]`: how much memory the process may take before it sheds load.
public enum MemoryLimit: Sendable, Equatable {
    /// What the control group of the process allows; where that has no limit, there is none.
    case auto
    /// There is no limit.
    case off
    /// Bytes.
    case bytes(UInt64)
}

/// `forwarding_fields`: where trusted proxies say whom they forward for. One of the two, never
/// both: a proxy that writes one passes the other on as the client sent it.
public enum ForwardingFields: String, Sendable, CaseIterable {
    /// `X-Forwarded-For`, `-Proto` and `-Host`.
    case xForwarded = "x-forwarded"
    /// `Forwarded` (RFC 7239).
    case forwarded
}

/// `limits` of a listener.
public struct ListenerLimits: Sendable, Equatable {
    /// Bytes of a request's head.
    public var headerBytes = 32 << 10
    /// Field lines of a request's head.
    public var headers = 100
    /// Bytes of a request target.
    public var url = 8 << 10
    /// Bytes of a request body.
    public var body: UInt64 = 64 << 20
    /// From a request's first byte to the end of its head.
    public var headerTimeout: Duration = .seconds(10)
    /// Without a byte in either direction, and between requests.
    public var idleTimeout: Duration = .seconds(75)
    /// Connections that may be open at once; nil: as many as the process takes.
    public var connections: Int?
    /// The same for each network of clients (an IPv4 address, an IPv6 /64); nil: any number.
    public var connectionsPerNetwork: Int?
    /// Requests of one connection before it is closed; nil: any number.
    public var requestsPerConnection: Int?
    /// Pipelined requests that are served in a row before other connections have their turn.
    public var pipelined = 16
    /// Bytes per second of a request body, on average, while the client is waited for; 0: any rate.
    public var bodyRate: UInt64 = 240
    /// The same of an answer, while the client is waited for to take it.
    public var answerRate: UInt64 = 240
    /// How long the client may be waited for before rates count.
    public var rateGrace: Duration = .seconds(20)

    public init() {}
}

/// `[project.NAME]`: the project, and where its keys come from.
public struct ProjectSource: Sendable, Equatable {
    public enum KeySource: Sendable, Equatable, CustomStringConvertible {
        case url(String)
        case file(String)

        /// The file, or the URL without its query, which may hold an API key.
        public var description: String {
            switch self {
            case .url(let url): redacted(url)
            case .file(let path): path
            }
        }
    }

    /// The project whose tokens are accepted.
    public var project: Project
    /// Where its key set is.
    public var keys: KeySource
    /// PEM file that replaces the system's trust store for the key set's URL.
    public var keysCA: String?
    /// `jwks_headers`: sent with each key-set request (an API key).
    public var keysHeaders: [(name: String, value: String)] = []
    /// `egress_proxy`: an HTTP proxy that CONNECTs to the key set's host.
    public var egressProxy: ListenAddress?
    /// `[project.NAME.client_fingerprints]`
    public var fingerprints: [ClientFingerprint] = []

    public init(project: Project, keys: KeySource) {
        self.project = project
        self.keys = keys
    }

    public static func == (left: ProjectSource, right: ProjectSource) -> Bool {
        left.project == right.project && left.keys == right.keys && left.keysCA == right.keysCA
            && left.egressProxy == right.egressProxy && left.fingerprints == right.fingerprints
            && left.keysHeaders.elementsEqual(right.keysHeaders) {
                $0.name == $1.name && $0.value == $1.value
            }
    }
}

/// `[upstream.NAME]`
public struct Upstream: Sendable, Equatable {
    public enum Balance: String, Sendable, CaseIterable {
        case leastRequests = "least_requests"
        case roundRobin = "round_robin"
        /// The same client gets the same server while it is there.
        case hash
    }

    /// `protocol`; the raw values are those of the file.
    public enum ServerProtocol: String, Sendable, CaseIterable {
        case http1 = "http/1.1"
        /// HTTP/2 without TLS, with prior knowledge (RFC 9113, section 3.3).
        case h2c
        /// HTTP/2 over TLS, agreed by ALPN (RFC 9113, section 3.2). There is `tls`.
        case http2 = "h2"

        /// Requests share connections.
        public var isMultiplexed: Bool { self != .http1 }
    }

    /// Unique; the label in logs and metrics.
    public var name: String
    /// What the servers are spoken to in.
    public var serverProtocol = ServerProtocol.http1
    /// At least one.
    public var servers: [ListenAddress]
    /// How a server is chosen.
    public var balance: Balance = .leastRequests
    /// What one client is for `hash`: its address or a field; requests without it go by
    /// `leastRequests`.
    public var hashBy = StickyKey.clientIP
    /// `forwarded`: its servers also get `Forwarded` (RFC 7239).
    public var sendsForwarded = false
    /// How much one server takes.
    public var limits = ServerLimits()
    /// When a request is tried once more.
    public var retries = Retries()
    /// Longest time to establish a connection.
    public var connectTimeout: Duration = .seconds(2)
    /// From the last byte of the request to the response head.
    public var responseHeaderTimeout: Duration = .seconds(30)
    /// Between two bytes of a response, and how long a pooled connection may lie idle.
    public var idleTimeout: Duration = .seconds(300)
    /// Idle connections that each loop keeps to each server. 0 closes them after every request.
    public var idleConnections = 64
    /// Connections are encrypted, and the server's certificate is verified; nil for plain text.
    public var tls: UpstreamTLS?
    /// How its servers are asked whether they work; nil: they are not.
    public var health: HealthCheck?
    /// When a server that fails requests is left alone.
    public var ejection = Ejection()
    /// Percent of the servers. While fewer are available, all are used: what is left would break
    /// under the load of all. 0: never.
    public var panicThreshold = 50.0
    /// How long it takes until a server that came back gets its whole share; zero: at once.
    public var slowStart: Duration = .seconds(10)
    /// How often names of servers are looked up again.
    public var resolveInterval: Duration = .seconds(30)

    public init(name: String, servers: [ListenAddress]) {
        self.name = name
        self.servers = servers
    }
}
