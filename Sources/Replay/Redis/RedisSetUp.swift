internal import Reactor

/// What is found out about a server before it is asked for claims.
struct RedisSetUp {
    /// `RedisServerFacts.identity`.
    let identity: [UInt8]
    /// The key of the marker that is read with every batch.
    let markerKey: [UInt8]
    let clock: RedisServerClock

    /// Logs in at a server, and makes sure that it is a master that keeps claims.
    ///
    /// - Parameter markerKeys: In a cluster, keys of several slots, so that one is left when slots
    ///   move away. One of them proves that the memory is whole.
    init(
        _ link: RedisLink, server: String, markerKeys: [[UInt8]], context: RedisContext,
        loop: EventLoop, until deadline: MonotonicInstant
    ) async throws(RedisFailure) {
        let settings = context.settings
        var commands = [
            RedisCommand("CLIENT", "SETNAME", "portcullis"), RedisCommand("INFO"),
            RedisCommand("TIME"),
        ]
        if settings.database != 0 {
            commands.append(RedisCommand("SELECT").adding(String(settings.database)))
        }
        let asked = loop.now
        let replies = try await link.logIn(
            username: settings.username, password: settings.password, then: commands,
            until: deadline)
        // The name is for the eyes of operators: without the permission it is missing.
        if replies.count > 3, replies[3].errorCode != nil {
            throw RedisFailure(.protocolError, "it has no database \(settings.database)")
        }
        if let code = replies[1].errorCode { throw RedisFailure(code, to: "answer INFO") }
        guard let facts = RedisServerFacts(info: replies[1].bytes) else {
            throw RedisFailure(.protocolError, "INFO does not tell its run_id")
        }
        try context.check(facts, of: server)
        guard let clock = RedisServerClock(replies[2], sent: asked) else {
            throw RedisFailure(replies[2].errorCode ?? "ERR", to: "tell the time")
        }
        let markers = RedisMarkerKeeper(
            link: link, identity: facts.identity, keys: markerKeys, clock: clock, context: context,
            loop: loop)
        identity = facts.identity
        self.clock = clock
        markerKey = try await markers.keep(server: server, until: deadline)
    }
}

extension RedisContext {
    /// Whether a server can be used, by what it says of itself.
    func check(_ facts: RedisServerFacts, of server: String) throws(RedisFailure) {
        let wantsCluster = if case .cluster = settings.topology { true } else { false }
        if facts.isCluster != wantsCluster {
            throw RedisFailure(
                .protocolError,
                facts.isCluster ? "it is in cluster mode" : "it is not in cluster mode",
                hint: "the URL has to start with \(wantsCluster ? "redis:" : "redis+cluster:")")
        }
        if !facts.isMaster {
            throw RedisFailure(
                .protocolError, "it is a replica",
                hint: RedisFailure.hint(forRefusedClaim: "READONLY"))
        }
        guard let policy = facts.evictionPolicy else { return }
        let danger =
            "a full memory drops claims before their time (maxmemory-policy \(policy)), and used "
            + "tokens pass again"
        if !settings.acceptsEviction {
            throw RedisFailure(
                .evicting, danger,
                hint: "CONFIG SET maxmemory-policy noeviction, or use a server of its own; "
                    + "redis_eviction = \"accept\" takes the risk")
        }
        notices.remark(.warning, danger, server: server)
    }
}
