internal import Configuration
internal import HTTP
internal import Proxy
internal import Reactor
internal import Replay

/// Makes the claim store that a configuration names.
enum StoreFactory {
    /// Opens it; what lies on disk is opened, what is far away is not asked yet.
    ///
    /// - Parameter log: Where the store says what operators should know of it.
    /// - Throws: why it cannot be used, and what to do.
    static func open(_ configuration: Configuration, log: any EventLog) throws(StoreOpenError)
        -> any ClaimStore
    {
        let settings = configuration.replay
        switch settings.store {
        case .memory:
            return MemoryStore(entryLimit: settings.maxEntries, now: .now)
        case .file:
            return try FileStore.open(
                directory: configuration.server.claimsDirectory, entryLimit: settings.maxEntries,
                now: .now, boot: .current())
        case .redis(let server):
            var redis = RedisSettings(server)
            redis.patience = settings.timeout
            return RedisStore(settings: redis, events: { log.log($0) })
        case .google(let account):
            var google = GoogleSettings(account)
            google.patience = settings.timeout
            return try GoogleStore.open(settings: google, events: { log.log($0) })
        }
    }
}

extension ClaimInstant {
    /// Reads both clocks.
    static var now: ClaimInstant {
        ClaimInstant(wallMicroseconds: Syscalls.wallMicroseconds(), monotonic: .now)
    }
}

extension RedisSettings {
    init(_ server: RedisServer) {
        let addresses = server.addresses.map(RedisAddress.init)
        switch server.topology {
        // The configuration has at least one.
        case .single: self.init(.single(addresses.first ?? .unix(path: "")))
        case .cluster: self.init(.cluster(addresses))
        case .sentinel(let master): self.init(.sentinel(addresses, master: master))
        }
        isSecure = server.usesTLS
        certificateAuthority = server.authorityFile
        username = server.user
        password = server.password
        sentinelPassword = server.sentinelPassword
        database = server.database
        keyPrefix = server.keyPrefix
        acceptsEviction = server.acceptsEviction
    }
}

extension RedisAddress {
    init(_ address: ListenAddress) {
        switch address {
        case .tcp(let host, let port): self = .tcp(host: host, port: port)
        case .unix(let path): self = .unix(path: path)
        }
    }
}

extension GoogleSettings {
    init(_ account: GoogleAccount) {
        self.init(credentials: account.credentialsFile)
        url = account.url
        authority = account.authorityFile
        switch account.egressProxy {
        case .tcp(let host, let port): egressProxy = .tcp(host: host, port: port)
        case .unix(let path): egressProxy = .unix(path: path)
        case nil: break
        }
        version = Help.version
    }
}
