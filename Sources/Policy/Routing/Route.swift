/// One `[[route]]`, checked.
public struct Route: Sendable {
    /// `app_check` and `replay`, from lenient to strict.
    public enum Mode: String, Sendable, CaseIterable, Comparable {
        case off, monitor, enforce

        public static func < (left: Mode, right: Mode) -> Bool { left.rank < right.rank }

        /// The place in the order, from 0.
        var rank: UInt32 {
            switch self {
            case .off: 0
            case .monitor: 1
            case .enforce: 2
            }
        }
    }

    /// `websocket_token`.
    public enum WebSocketToken: String, Sendable, CaseIterable {
        /// In its own field, as with every request.
        case header
        /// There, or in an entry `appcheck.TOKEN` of Sec-WebSocket-Protocol, which is the only field
        /// of a handshake that browsers let a page set.
        case `protocol`
    }

    /// Unique; the label in logs and metrics.
    public var name: String
    /// Lower case, no port; "*.example.com" matches one or more labels. Empty: every host.
    public var hosts: [String] = []
    /// Exact, or a prefix when it ends in "/*".
    public var path: String
    /// Upper case as in RFC 9110; empty: every method.
    public var methods: [String] = []
    /// Index of the upstream.
    public var upstream: Int
    /// Indices of the projects whose tokens are accepted; nil: all.
    public var projects: [Int]?
    /// Accepted apps as (project, app) indices; nil: every app of those projects.
    public var apps: [AppIndex]?
    /// How strictly tokens are looked at.
    public var mode: Mode = .monitor
    /// The share of clients that is enforced, in millionths of a percent: 0 to 100,000,000.
    public var enforcedShare: UInt32 = 100_000_000
    /// Which clients make up the share: two routes with equal seeds and shares enforce the same
    /// clients. Key `share_seed`; the default is the route's name.
    public var seed: String
    /// What one client is, for the enforced share.
    public var stickyBy: StickyKey = .clientIP
    /// Whether each token may be used once. Never stricter than `mode`.
    public var replay: Mode = .off
    /// What happens while the claim store cannot answer; nil: what `[replay]` says.
    public var whenUnavailable: WhenUnavailable?
    /// How many requests the route takes of one client; nil: any number.
    public var rateLimit: RateLimit?
    /// Where the token of a WebSocket handshake may stand.
    public var webSocketToken: WebSocketToken = .header
    /// Keeps the token's own field on the way upstream.
    public var forwardToken = false
    /// nil: answers of our own carry no CORS fields.
    public var cors: CORS?

    /// A route that monitors every request of a path.
    public init(name: String, path: String, upstream: Int) {
        self.name = name
        seed = name
        self.path = path
        self.upstream = upstream
    }
}

/// An app by its place in the configuration.
public struct AppIndex: Sendable, Hashable {
    /// Index of the project.
    public var project: Int
    /// Index of the app among the project's.
    public var app: Int

    /// The app at a place.
    public init(project: Int, app: Int) {
        self.project = project
        self.app = app
    }
}

/// What one client is, for the enforced share.
public enum StickyKey: Sendable, Equatable {
    case clientIP
    /// A request field, lower case.
    case field(String)
    case app
}
