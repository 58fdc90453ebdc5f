internal import Configuration

/// Words for the claim store that a configuration names; never a password.
struct StoreWording {
    private let configuration: Configuration

    init(_ configuration: Configuration) {
        self.configuration = configuration
    }

    /// The value of `store`.
    var name: String {
        switch configuration.replay.store {
        case .memory: "memory"
        case .file: "file"
        case .redis: "redis"
        case .google: "google"
        }
    }

    /// Which store, and where: the same words are the same claims.
    var location: String { "\(name): \(place)" }

    /// What becomes of the claims when a new binary takes over.
    var upgrade: String {
        configuration.replay.store == .memory ? "refused, restart instead" : "keeps claims"
    }

    /// Where the claims are.
    var place: String {
        switch configuration.replay.store {
        case .memory: "this process"
        case .file: configuration.server.claimsDirectory
        case .redis(let server): Self.place(of: server)
        case .google(let account): account.url
        }
    }

    private static func place(of server: RedisServer) -> String {
        let addresses = server.addresses.map(\.description).joined(separator: ", ")
        let servers =
            switch server.topology {
            case .single: addresses
            case .cluster: "Cluster of \(addresses)"
            case .sentinel(let master): "\(master) of Sentinels \(addresses)"
            }
        let database = server.database == 0 ? "" : ", database \(server.database)"
        return servers + database + (server.usesTLS ? ", TLS" : "")
    }
}
