/// Where a Redis or Valkey server listens.
public enum RedisAddress: Sendable, Hashable, CustomStringConvertible {
    /// `host` is a name, or an IPv4 or IPv6 literal without brackets.
    case tcp(host: String, port: UInt16)
    case unix(path: String)

    public var description: String {
        switch self {
        case .tcp(let host, let port):
            host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

/// How the servers of a store belong together.
public enum RedisTopology: Sendable, Equatable {
    /// One server.
    case single(RedisAddress)
    /// A Redis Cluster: some of its nodes, by which the others are found.
    case cluster([RedisAddress])
    /// A server that sentinels watch and replace: the sentinels, and the name that they know it by.
    case sentinel([RedisAddress], master: String)
}

/// Everything that the store `redis` has to be told.
///
/// It has no description of its own on purpose: `password` and `sentinelPassword` must not get into
/// a log, so the store never prints its settings.
public struct RedisSettings: Sendable, Equatable {
    public var topology: RedisTopology
    /// Connections, those to sentinels too, are made with TLS; the server's certificate has to be
    /// for the host of its address.
    public var isSecure = false
    /// PEM file of the certificates to believe; nil is the system's store.
    public var certificateAuthority: String?
    /// Who logs in (ACL); nil is the server's default user.
    public var username: String?
    /// Its password; nil logs in nobody.
    public var password: String?
    /// The sentinels' own password.
    public var sentinelPassword: String?
    /// Number of the database; a cluster has 0 alone.
    public var database = 0
    /// What the names of all keys start with, so that several services can share a server.
    public var keyPrefix = "portcullis:"
    /// Claims are made although the server is set to evict keys before their time.
    public var acceptsEviction = false
    /// A claim that was given less time than this, and had no answer, says nothing about a server:
    /// monitored requests are in a hurry, and must not open the breaker for enforced ones.
    /// The first one: see `ClaimStore.adopt(patience:)`.
    public var patience = Duration.zero
    /// How long it may take to connect: the name's look-up, TLS and log-in included.
    public var connectTimeout = Duration.seconds(2)
    /// How long a connection may owe an answer before it is given up. The claims that wait for it
    /// have their own, shorter patience.
    public var stallTimeout = Duration.seconds(2)
    /// How often the clock and the settings of a server are looked at.
    public var lookInterval = Duration.seconds(10)

    public init(_ topology: RedisTopology) {
        self.topology = topology
    }
}
