/// What is going on, for `GET /status` and `portcullis status`: names from the configuration, our
/// own words and numbers, and never a secret or a token.
///
/// The names of properties are those of the JSON document, in snake_case there. Members may be added;
/// none changes its meaning.
public struct StatusReport: Sendable, Codable, Equatable {
    /// What an operator should look at, the worst first.
    public var problems: [StatusProblem] = []
    public var process: ProcessPart
    public var configuration: ConfigurationPart
    public var traffic = TrafficPart()
    /// In the order of the configuration, as everything below.
    public var upstreams: [UpstreamPart] = []
    public var keySets: [KeySetPart] = []
    /// nil while no route has replay protection.
    public var replay: ReplayPart?
    public var certificates: [CertificatePart] = []
    public var listeners: [ListenerPart] = []

    public init(process: ProcessPart, configuration: ConfigurationPart) {
        self.process = process
        self.configuration = configuration
    }
}

extension StatusReport {
    /// The process as a whole.
    public struct ProcessPart: Sendable, Codable, Equatable {
        public var version: String
        public var pid: Int32
        /// RFC 3339.
        public var startedAt: String
        public var uptimeSeconds: Int64
        /// starting | serving | draining
        public var phase: String
        /// What `/readyz` says, and why not.
        public var ready: Bool
        public var notReady: [String] = []
        /// Event loops, and the numbers of those that do not answer.
        public var loops: Int
        public var silentLoops: [Int] = []
        public var residentBytes: UInt64?
        /// Above it, load is shed.
        public var memoryLimitBytes: UInt64?
        public var openDescriptors: Int?
        public var descriptorLimit: UInt64?
        /// Since the start.
        public var droppedLogLines: UInt64 = 0

        public init(
            version: String, pid: Int32, startedAt: String, uptimeSeconds: Int64, phase: String,
            ready: Bool, loops: Int
        ) {
            self.version = version
            self.pid = pid
            self.startedAt = startedAt
            self.uptimeSeconds = uptimeSeconds
            self.phase = phase
            self.ready = ready
            self.loops = loops
        }
    }

    /// The configuration that serves, and how the last attempt to replace it went.
    public struct ConfigurationPart: Sendable, Codable, Equatable {
        public var file: String
        /// When the one that serves was read, RFC 3339.
        public var loadedAt: String
        public var reloads: UInt64 = 0
        public var failedReloads: UInt64 = 0
        /// When a reload ended last, RFC 3339; nil before the first.
        public var lastReloadAt: String?
        /// Why it changed nothing; empty when it took effect.
        public var lastReloadErrors: [String] = []

        public init(file: String, loadedAt: String) {
            self.file = file
            self.loadedAt = loadedAt
        }
    }

    /// One upstream.
    public struct UpstreamPart: Sendable, Codable, Equatable {
        public var name: String
        public var balance: String
        public var `protocol`: String
        /// Addresses that get requests because they work, and all that there are.
        public var available: Int
        public var total: Int
        /// Too few work, so requests go to those that do not, too.
        public var panic: Bool
        /// Requests that wait for room.
        public var waiting: Int
        public var servers: [ServerPart]

        public init(
            name: String, balance: String, protocol: String, available: Int, total: Int,
            panic: Bool, waiting: Int, servers: [ServerPart]
        ) {
            self.name = name
            self.balance = balance
            self.protocol = `protocol`
            self.available = available
            self.total = total
            self.panic = panic
            self.waiting = waiting
            self.servers = servers
        }
    }

    /// One address of an upstream.
    public struct ServerPart: Sendable, Codable, Equatable {
        /// How it is.
        public enum State: String, Sendable, Codable {
            /// It gets requests.
            case ready
            /// It was away, and gets requests little by little.
            case returning
            /// An operator took it out of service.
            case draining
            /// Its checks fail.
            case unhealthy
            /// Loops leave it alone because of what their requests met.
            case ejected
            /// Its name has no address.
            case unresolved
            /// No loop answers.
            case unknown
        }

        /// The address.
        public var server: String
        /// As the configuration writes it.
        public var configured: String
        public var state: State
        /// Why it is not `ready`.
        public var why: String?
        public var inFlight = 0
        public var idleConnections = 0
        /// How a request on it failed last, a word of the log's `failure`, and how long ago.
        public var lastFailure: String?
        public var lastFailureSecondsAgo: Int64?

        public init(server: String, configured: String, state: State, why: String? = nil) {
            self.server = server
            self.configured = configured
            self.state = state
            self.why = why
        }
    }

    /// One project's keys.
    public struct KeySetPart: Sendable, Codable, Equatable {
        public var project: String
        /// Tokens can be verified.
        public var usable: Bool
        public var keys: Int
        public var skipped: Int
        public var ageSeconds: Int64?
        /// Until the next attempt; nil while one is under way.
        public var nextRefreshSeconds: Int64?
        /// Why the last attempt failed; nil after a success.
        public var lastError: String?

        public init(
            project: String, usable: Bool, keys: Int, skipped: Int, ageSeconds: Int64?,
            nextRefreshSeconds: Int64?, lastError: String?
        ) {
            self.project = project
            self.usable = usable
            self.keys = keys
            self.skipped = skipped
            self.ageSeconds = ageSeconds
            self.nextRefreshSeconds = nextRefreshSeconds
            self.lastError = lastError
        }
    }

    /// The store of used tokens.
    public struct ReplayPart: Sendable, Codable, Equatable {
        public var store: String
        public var entries: Int?
        public var entryLimit: Int?
        /// closed | half_open | open; nil where there is no breaker.
        public var breaker: String?

        public init(store: String, entries: Int?, entryLimit: Int?, breaker: String?) {
            self.store = store
            self.entries = entries
            self.entryLimit = entryLimit
            self.breaker = breaker
        }
    }

    /// A certificate that is shown to clients.
    public struct CertificatePart: Sendable, Codable, Equatable {
        public var file: String
        public var names: [String]
        /// RFC 3339.
        public var expiresAt: String
        public var secondsLeft: Int64

        public init(file: String, names: [String], expiresAt: String, secondsLeft: Int64) {
            self.file = file
            self.names = names
            self.expiresAt = expiresAt
            self.secondsLeft = secondsLeft
        }
    }

    /// Where clients come.
    public struct ListenerPart: Sendable, Codable, Equatable {
        public var name: String
        public var protocols: [String]
        public var tls: Bool
        /// Connections with a request on the way, and between requests.
        public var active = 0
        public var idle = 0
        /// Since the start.
        public var accepted: UInt64 = 0

        public init(name: String, protocols: [String], tls: Bool) {
            self.name = name
            self.protocols = protocols
            self.tls = tls
        }
    }
}
