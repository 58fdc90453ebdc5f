internal import Configuration
internal import Reactor

/// Where the admin listener of a running proxy is, as a command line says it.
struct AdminTarget: Equatable {
    /// Where `run` listens in the example configuration.
    static let usual = ListenAddress.tcp(host: "127.0.0.1", port: 9090)
    static let options: [Option] = [.config, .admin]

    /// The configuration of the proxy that is asked.
    var configuration: String?
    /// Its address, whatever the configuration says.
    var address: ListenAddress?

    /// Reads `-c FILE` and `--admin ADDRESS`.
    init(_ options: ParsedOptions) throws(UsageError) {
        configuration = try options.one(.config)
        guard let text = try options.one(.admin) else { return }
        let local = "localhost:"
        let literal = text.hasPrefix(local) ? "127.0.0.1:" + text.dropFirst(local.count) : text
        guard let address = ListenAddress(literal) else {
            throw UsageError("\"\(text)\" is no address; write host:port or unix:/path")
        }
        self.address = address
    }

    /// What the configuration says of the admin listener.
    ///
    /// - Throws: what keeps the proxy from being asked, and what to do.
    func resolve(_ console: Console) throws(AdminClientError) -> Admin {
        guard let configuration else {
            return Admin(listen: address ?? Self.usual, tokenFile: nil)
        }
        let (loaded, diagnostics) = Configuration.load(
            file: configuration, surroundings: console.surroundings)
        guard let loaded else {
            // A broken file must keep nobody from looking at the proxy that still runs.
            if let address { return Admin(listen: address, tokenFile: nil) }
            let first = diagnostics.first { $0.severity == .error }?.description ?? ""
            let line = first.split(separator: "\n").first.map(String.init) ?? configuration
            throw AdminClientError(
                "\(line)\nthe configuration is broken, so it does not tell where the admin listener "
                    + "is; ask with --admin ADDRESS")
        }
        guard let admin = loaded.admin else {
            if let address { return Admin(listen: address, tokenFile: nil) }
            throw AdminClientError(
                "\(configuration) has no [admin] table, so its proxy has no admin listener; add one "
                    + "with listen = \"\(Self.usual)\", and restart")
        }
        if let address { return Admin(listen: address, tokenFile: admin.tokenFile) }
        return Admin(listen: try Self.reachable(admin.listen), tokenFile: admin.tokenFile)
    }

    /// Where something that listens on every address is reached.
    private static func reachable(_ listen: ListenAddress) throws(AdminClientError) -> ListenAddress
    {
        switch listen {
        case .unix: return listen
        case .tcp(_, 0):
            throw AdminClientError(
                "the admin listener has a port that the system chose (port 0); the log says which "
                    + "(\"admin listening\"), ask with --admin ADDRESS")
        case .tcp(let host, let port):
            guard let bytes = SocketAddress(literal: host, port: port)?.ipBytes,
                bytes.allSatisfy({ $0 == 0 })
            else { return listen }
            return .tcp(host: bytes.count == 4 ? "127.0.0.1" : "::1", port: port)
        }
    }
}

/// Why the admin listener did not do what was asked: what is wrong, and what to do.
struct AdminClientError: Error, Equatable {
    var message: String

    init(_ message: String) {
        self.message = message
    }
}
