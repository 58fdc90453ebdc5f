import Replay
import Testing

@Suite("The store redis, with sentinels", .enabled(if: RedisServer.isInstalled))
struct RedisSentinelTests {
    /// A master, its replica, and three sentinels with a password.
    private struct Sentinels {
        let master: RedisServer
        let replica: RedisServer
        let sentinels: [RedisServer]

        init() async throws {
            let master = try await RedisServer()
            let replica = try await RedisServer(["replicaof 127.0.0.1 \(master.port)"])
            try await until("the replica is in step") {
                try replica.cli("info", "replication").contains("master_link_status:up")
            }
            var sentinels: [RedisServer] = []
            for _ in 0..<3 {
                sentinels.append(
                    try await RedisServer(
                        isSentinel: true,
                        [
                            "requirepass watch", "sentinel sentinel-pass watch",
                            "sentinel monitor claims 127.0.0.1 \(master.port) 2",
                            "sentinel down-after-milliseconds claims 500",
                            "sentinel failover-timeout claims 3000",
                        ]))
            }
            try await until("the sentinels know each other and the replica") {
                try sentinels.allSatisfy { sentinel in
                    let text = try sentinel.cli(
                        "-a", "watch", "--no-auth-warning", "info", "sentinel")
                    return text.contains("slaves=1") && text.contains("sentinels=3")
                }
            }
            self.master = master
            self.replica = replica
            self.sentinels = sentinels
        }

        var settings: RedisSettings {
            var settings = RedisSettings(
                .sentinel(
                    sentinels.map { .tcp(host: "127.0.0.1", port: $0.port) }, master: "claims"))
            settings.sentinelPassword = "watch"
            return settings
        }
    }

    @Test("R13: after a failover the new master is used; what was issued before never passes twice")
    func failover() async throws {
        let set = try await Sentinels()
        // One sentinel is gone: the others know as well.
        try await withCaller(set.settings) { caller in
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .claimed)
            set.sentinels[0].kill()
            set.master.kill()
            guard case .unavailable = await caller.claim(.fresh()) else {
                Issue.record("claimed without a master")
                return
            }
            try await until("the replica is promoted and used", within: .seconds(40)) {
                await caller.claim(.fresh(age: -60)) == .claimed
            }
            // It reached the replica, or it did not: never is it claimed again.
            let again = await caller.claim(token.again())
            #expect(again == .reused || again == .predates)
            #expect(await caller.claim(token.again()) == .reused)
            let role = try set.replica.cli("info", "replication")
            #expect(role.contains("role:master"))
        }
    }

    @Test("an unknown name of a master, a wrong password, and no sentinel at all are said")
    func wrong() async throws {
        let set = try await Sentinels()
        var unknown = set.settings
        if case .sentinel(let addresses, _) = unknown.topology {
            unknown.topology = .sentinel(addresses, master: "nobody")
        }
        try await withCaller(unknown) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.protocolError))
            #expect(caller.events.text.contains("no master of the name \"nobody\""))
        }
        var denied = set.settings
        denied.sentinelPassword = "open-sesame"
        try await withCaller(denied) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.denied))
            #expect(!caller.events.text.contains("open-sesame"))
        }
        for sentinel in set.sentinels { sentinel.kill() }
        try await withCaller(set.settings) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.unreachable))
        }
    }

    @Test("a sentinel that still names the old master, now a replica, is not believed")
    func replicaNamed() async throws {
        let set = try await Sentinels()
        try await withCaller(set.settings) { caller in
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .claimed)
            try set.sentinels[1].cli(
                "-a", "watch", "--no-auth-warning", "sentinel", "failover", "claims")
            try await until("the other server is used", within: .seconds(40)) {
                let role = try set.replica.cli("info", "replication")
                return await caller.claim(.fresh(age: -60)) == .claimed
                    && role.contains("role:master")
            }
            let again = await caller.claim(token.again())
            #expect(again == .reused || again == .predates)
        }
    }
}
