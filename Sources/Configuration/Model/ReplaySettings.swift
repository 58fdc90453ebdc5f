public import Policy

/// `[replay]`: where spent limited-use tokens are remembered.
public struct ReplaySettings: Sendable, Equatable {
    public enum Store: Sendable, Equatable {
        /// In this process: claims end with it.
        case memory
        /// In `Server.claimsDirectory`.
        case file
        case redis(RedisServer)
        case google(GoogleAccount)
    }

    /// Who remembers.
    public var store: Store = .file
    /// For routes that do not say themselves.
    public var whenUnavailable: WhenUnavailable = .reject
    /// A token that lives longer (`exp - iat`) is a session token. Whole seconds.
    public var limitedUseMaxLifetime: Duration = .seconds(29 * 60)
    /// How long an enforced request waits for a remote store.
    public var timeout: Duration = .milliseconds(250)
    /// How long a monitored request waits for a remote store; at most `timeout`.
    public var monitorPatience: Duration = .milliseconds(25)
    /// Claims that `memory` and `file` remember at most.
    public var maxEntries = 1_000_000

    public init() {}
}

/// `redis` and what belongs to it: a Redis or Valkey server, a Cluster of them, or those that
/// Sentinels watch.
public struct RedisServer: Sendable, Equatable {
    public enum Topology: Sendable, Equatable {
        case single
        case cluster
        /// The addresses are those of Sentinels, which know where the master of this name is.
        case sentinel(master: String)
    }

    /// What the addresses are.
    public var topology: Topology
    /// At least one; exactly one, perhaps a Unix socket, where the topology is `single`.
    public var addresses: [ListenAddress]
    /// Every connection is TLS, Sentinels' too.
    public var usesTLS = false
    /// ACL user of the servers; nil: the default one.
    public var user: String?
    /// Password of the servers, with or without a user.
    public var password: String?
    /// Password of the Sentinels.
    public var sentinelPassword: String?
    /// Number of the database, 0 to 9999; 0 on a Cluster.
    public var database = 0
    /// PEM file that replaces the system's trust store.
    public var authorityFile: String?
    /// What every key begins with.
    public var keyPrefix = "portcullis:"
    /// Claims are made even where the server may evict unexpired ones.
    public var acceptsEviction = false

    public init(topology: Topology, addresses: [ListenAddress]) {
        self.topology = topology
        self.addresses = addresses
    }
}

/// `google` and what belongs to it: the method `verifyAppCheckToken`.
public struct GoogleAccount: Sendable, Equatable {
    /// JSON key file of a service account.
    public var credentialsFile: String
    /// The service with its version, without a slash at the end: https, or http on loopback.
    public var url = "https://firebaseappcheck.googleapis.com/v1beta"
    /// PEM file that replaces the system's trust store.
    public var authorityFile: String?
    /// An HTTP proxy that CONNECTs to Google's hosts.
    public var egressProxy: ListenAddress?

    public init(credentialsFile: String) {
        self.credentialsFile = credentialsFile
    }
}

extension Configuration {
    /// Whether any route claims tokens: without one, no store is opened.
    public var claimsTokens: Bool { routes.routes.contains { $0.replay != .off } }
}

extension Server {
    /// Where the `file` store keeps its claims.
    public var claimsDirectory: String { stateDirectory + "/replay" }
}
