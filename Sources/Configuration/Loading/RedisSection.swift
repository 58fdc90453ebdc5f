internal import Policy

/// The keys of `[replay]` that say how Redis is reached.
extension ConfigurationLoader {
    /// Keys that mean something only with `store = "redis"`.
    static let redisKeys = [
        "redis", "redis_password", "redis_sentinel_password", "redis_ca", "redis_key_prefix",
        "redis_eviction",
    ]

    /// The server, or nil after what is wrong with it was reported.
    func readRedis(_ table: TableReader) -> RedisServer? {
        let password = readPassword("redis_password", table)
        let sentinelPassword = readPassword("redis_sentinel_password", table)
        let authority = readAuthority("redis_ca", table)
        let prefix = table.setting("redis_key_prefix")?.string(checkKeyPrefix)
        let eviction = table.setting("redis_eviction")?.choice(Eviction.self)
        let url = table.required(
            "redis", hint: "such as redis = \"rediss://cache.internal:6379/0\"")
        guard let url, var server = readURL(url) else { return nil }
        checkPassword(of: server, url, table)
        if let password { server.password = password }
        server.sentinelPassword = sentinelPassword
        server.authorityFile = authority
        if let prefix { server.keyPrefix = prefix }
        server.acceptsEviction = eviction == .accept
        if !server.usesTLS {
            table.setting("redis_ca")?.hasNoEffect(because: "\"redis\" is not TLS (\"rediss://\")")
        }
        if case .sentinel = server.topology { return server }
        table.setting("redis_sentinel_password")?.hasNoEffect(because: "\"redis\" has no Sentinels")
        return server
    }

    /// Reports what is wrong with a server that another store stands in for. Its secrets need not be
    /// there.
    func checkSpareRedis(_ table: TableReader) {
        if let url = table.setting("redis") { _ = readURL(url) }
        _ = table.setting("redis_key_prefix")?.string(checkKeyPrefix)
        _ = table.setting("redis_eviction")?.choice(Eviction.self)
    }

    private enum Eviction: String, CaseIterable { case refuse, accept }

    private func readURL(_ setting: Setting) -> RedisServer? {
        setting.string { text throws(Misspelling) in try RedisURLText(text).server }
    }

    private func readPassword(_ key: String, _ table: TableReader) -> String? {
        guard var setting = table.setting(key) else { return nil }
        setting.isSecret = true
        return readSecret(setting, .password)
    }

    private func checkPassword(of server: RedisServer, _ url: Setting, _ table: TableReader) {
        let other = table.setting("redis_password")
        if server.password != nil, let other {
            other.error("must not be there: \"redis\" has a password already")
        } else if server.user != nil, server.password == nil, other == nil {
            url.missing(
                "has a user, but no password",
                hint: "write \":PASSWORD@\" for the password of the default user, or put the "
                    + "user's into \"redis_password\"")
        }
    }
}

/// A prefix that every client shows as it is.
private func checkKeyPrefix(_ text: String) throws(Misspelling) -> String {
    let isPrefix =
        text.utf8.count <= 128 && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 }
    if !isPrefix {
        throw Misspelling(
            "must be at most 128 printable ASCII characters without spaces: \(quoted(text))")
    }
    if text.contains("{") || text.contains("}") {
        throw Misspelling(
            "must not have braces: \(quoted(text))",
            hint: "a Cluster would put every claim on the one node that they choose")
    }
    return text
}
