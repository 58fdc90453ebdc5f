internal import Policy

/// `[server]`, `[log]` and `[admin]`.
extension ConfigurationLoader {
    /// `[server]`, or its defaults.
    func readServer(_ root: TableReader) -> Server {
        var server = Server()
        guard let table = root.table("server", schema: .server, label: "[server]") else {
            return server
        }
        if let workers = table.setting("workers")?.integer(in: 0...256) {
            server.workers = workers
        }
        if let directory = table.setting("state_directory")?.string() {
            server.stateDirectory = resolved(directory)
        }
        if let timeout = table.setting("drain_timeout")?.duration(in: .zero ... .hours(1)) {
            server.drainTimeout = timeout
        }
        if let delay = table.setting("drain_delay")?.duration(in: .zero ... .hours(1)) {
            server.drainDelay = delay
        }
        if let timeout = table.setting("upgrade_timeout")?.duration(in: .seconds(1) ... .hours(1)) {
            server.upgradeTimeout = timeout
        }
        if let size = table.setting("token_cache")?.size(in: 64 << 10...4 << 30) {
            server.tokenCacheBytes = Int(clamping: size)
        }
        if let count = table.setting("max_connections")?.integer(in: 1...10_000_000) {
            server.maxConnections = count
        }
        if let limit = table.setting("memory_limit") { readMemoryLimit(limit, into: &server) }
        server.verifications = readVerifications(table)
        return server
    }

    /// `[log]`, or its defaults.
    func readLog(_ root: TableReader) -> Log {
        var settings = Log()
        guard let table = root.table("log", schema: .log, label: "[log]") else { return settings }
        if let level = table.setting("level")?.choice(Log.Level.self) { settings.level = level }
        if let format = table.setting("format")?.choice(Log.Format.self) {
            settings.format = format
        }
        if let access = table.setting("access")?.choice(Log.Access.self) {
            settings.access = access
        }
        return settings
    }

    /// `[admin]`; nil when it is not there.
    func readAdmin(_ root: TableReader) -> Located<Admin>? {
        guard let table = root.table("admin", schema: .admin, label: "[admin]") else { return nil }
        let tokenFile = table.setting("token_file")
        let tokenPath = tokenFile?.string().map(resolved)
        var token: AdminToken?
        if let tokenFile, let tokenPath { token = readAdminToken(tokenPath, tokenFile) }
        let listen = table.required("listen", hint: "such as listen = \"127.0.0.1:9090\"")
        guard let listen, let address = listen.string(AddressText.listen) else { return nil }
        if !AddressText.isLoopback(address) {
            listen.warning(
                "is reachable from other machines",
                hint: "metrics and the state of every route are open to whoever connects: "
                    + "\"token_file\" is for changes, not for reading")
        }
        let admin = Admin(listen: address, tokenFile: tokenPath, token: token)
        return Located(value: admin, region: listen.region)
    }

    /// A file that must be there when the proxy runs need not be there where the configuration is
    /// checked.
    func warnIfUnreadable(_ path: String, _ setting: Setting) {
        if surroundings.file(path) == nil {
            // Somebody may have put a URL here, with its password.
            let shown = path.contains("://") ? redacted(path) : path
            setting.warning("names a file that cannot be read here: \(quoted(shown))")
        }
    }
}

extension Duration {
    static func minutes(_ count: Int) -> Duration { .seconds(count * 60) }
    static func hours(_ count: Int) -> Duration { .seconds(count * 3600) }
}
