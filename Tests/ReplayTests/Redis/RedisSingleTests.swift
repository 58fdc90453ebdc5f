import Reactor
import Replay
import TestKit
import Testing

@Suite("The store redis, with one real server", .enabled(if: RedisServer.isInstalled))
struct RedisSingleTests {
    @Test("R2: a token is claimed once, by whichever loop and process")
    func claimsOnce() async throws {
        let server = try await RedisServer()
        try await withCaller(.single(server)) { one in
            try await withCaller(.single(server)) { other in
                let token = Claim.fresh()
                #expect(await one.inspect(token) == .claimed)
                #expect(await one.claim(token) == .claimed)
                #expect(await other.claim(token.again()) == .reused)
                #expect(await one.claim(token.again()) == .reused)
                #expect(await other.inspect(token) == .reused)
                #expect(await other.claim(.fresh()) == .claimed)
            }
        }
    }

    @Test("R1, R2: of a thousand copies at once, over four loops of two processes, one passes")
    func stampede() async throws {
        let server = try await RedisServer()
        try await withCaller(.single(server)) { one in
            try await withCaller(.single(server)) { two in
                let callers = [
                    one, two, try RedisCaller(sharing: one), try RedisCaller(sharing: two),
                ]
                for caller in callers[2...] { await caller.open() }
                for _ in 0..<20 {
                    let token = Claim.fresh()
                    let passed = await withTaskGroup(of: ClaimOutcome.self) { group in
                        for copy in 0..<1000 {
                            group.addTask { await callers[copy % 4].claim(token) }
                        }
                        return await group.reduce(into: [ClaimOutcome]()) { $0.append($1) }
                    }
                    #expect(passed.count { $0 == .claimed } == 1)
                    #expect(passed.count { $0 == .reused } == 999)
                }
                for caller in callers[2...] { await caller.close() }
            }
        }
    }

    @Test("R4: an entry lives until the token's end and five minutes")
    func expiry() async throws {
        let server = try await RedisServer()
        try await withCaller(.single(server)) { caller in
            let token = Claim.fresh(life: 300)
            #expect(await caller.claim(token) == .claimed)
            let keys = try server.cli("keys", "portcullis:*").split(separator: "\n")
            let key = try #require(keys.first { $0 != "portcullis:epoch" })
            #expect(key.count == "portcullis:".count + 22)
            let end = try #require(Int64(try server.cli("pexpiretime", String(key))))
            let least = token.retainedUntil * 1000 + 300_000
            #expect(least...least + 2000 ~= end)
        }
    }

    @Test("R9: a release takes back the own claim, and nobody else's")
    func releases() async throws {
        let server = try await RedisServer()
        try await withCaller(.single(server)) { one in
            try await withCaller(.single(server)) { other in
                let token = Claim.fresh()
                #expect(await one.claim(token) == .claimed)
                #expect(await other.release(token) == false)
                #expect(await one.release(token))
                #expect(await other.claim(token) == .claimed)
                #expect(await one.release(token) == false)
                #expect(await one.claim(token.again()) == .reused)
            }
        }
    }

    @Test("R13: after FLUSHALL, tokens issued before are predates, and used ones do not pass")
    func flushed() async throws {
        let server = try await RedisServer()
        try await withCaller(.single(server)) { one in
            try await withCaller(.single(server)) { other in
                let token = Claim.fresh()
                #expect(await one.claim(token) == .claimed)
                let old = Claim.fresh(age: 1)
                try server.cli("flushall")
                #expect(await other.claim(token.again()) == .predates)
                #expect(await one.claim(token.again()) == .reused)
                #expect(await one.claim(old) == .predates)
                #expect(await other.claim(old.again()) == .reused)
                #expect(other.events.text.contains("lost what it knew"))
                // A token of the time afterwards is as good as ever.
                #expect(await other.claim(.fresh(age: -2)) == .claimed)
            }
        }
    }

    @Test(
        "R13: a marker that another server wrote (a replica promoted, an old file) is not believed")
    func foreignMarker() async throws {
        let server = try await RedisServer()
        try server.cli("set", "portcullis:epoch", "another.server 1000")
        let token = Claim.fresh()
        try await withCaller(.single(server)) { caller in
            #expect(caller.store.reliableSince > token.issuedAt)
            #expect(await caller.claim(token) == .predates)
            #expect(await caller.claim(.fresh()) == .claimed)
        }
        let marker = try server.cli("get", "portcullis:epoch")
        #expect(!marker.contains("another.server"))
        // The next proxy finds the memory whole.
        try await withCaller(.single(server)) { caller in
            #expect(caller.store.reliableSince == Int64(marker.split(separator: " ")[1]))
            #expect(await caller.claim(token.again()) == .reused)
        }
    }

    @Test("R13: after a restart without a disk, tokens issued before are predates")
    func restarted() async throws {
        let server = try await RedisServer()
        try await withCaller(.single(server)) { caller in
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .claimed)
            server.kill()
            guard case .unavailable = await caller.claim(.fresh()) else {
                Issue.record("a claim without a server")
                return
            }
            try await server.start()
            try await until("it is connected again") {
                await caller.claim(.fresh(age: -5)) == .claimed
            }
            #expect(await caller.claim(token.again()) == .predates)
            #expect(await caller.claim(token.again()) == .reused)
        }
    }

    @Test("R11: a stopped server is unavailable at once; the breaker opens until it is back")
    func stopped() async throws {
        let server = try await RedisServer()
        try await withCaller(.single(server)) { caller in
            server.kill()
            var outcomes: [ClaimOutcome] = []
            try await until("the breaker opens") {
                outcomes.append(await caller.claim(.fresh()))
                return outcomes.last == .unavailable(.breakerOpen)
            }
            #expect(caller.store.statistics.breaker == .open)
            for outcome in outcomes.dropLast() {
                #expect(
                    [.unavailable(.unreachable), .unavailable(.disconnected)].contains(outcome))
            }
            #expect(outcomes.count >= 5)
            try await server.start()
            try await until("it is connected again") {
                await caller.claim(.fresh(age: -5)) == .claimed
            }
            #expect(caller.store.statistics.breaker == .closed)
            #expect(caller.events.text.contains("cannot use a Redis server"))
        }
    }

    @Test("R11: a paused server costs its time-out five times, then nothing, and burns what it got")
    func paused() async throws {
        let server = try await RedisServer()
        try await withCaller(.single(server)) { caller in
            server.pause(true)
            let lost = Claim.fresh()
            #expect(
                await caller.claim(lost, patience: .milliseconds(50)) == .unavailable(.timeout))
            for _ in 0..<4 {
                let outcome = await caller.claim(.fresh(), patience: .milliseconds(50))
                #expect(outcome == .unavailable(.timeout))
            }
            let start = ContinuousClock.now
            #expect(await caller.claim(.fresh()) == .unavailable(.breakerOpen))
            #expect(ContinuousClock.now - start < .milliseconds(500))
            server.pause(false)
            try await until("it answers again") { await caller.claim(.fresh()) == .claimed }
            // Nobody knew whether it was made: it was.
            #expect(await caller.claim(lost.again()) == .reused)
        }
    }

    @Test("M1: claims in a hurry that time out do not open the breaker for those with patience")
    func hurry() async throws {
        let server = try await RedisServer()
        var settings = RedisSettings.single(server)
        settings.patience = .milliseconds(300)
        settings.stallTimeout = .seconds(60)
        try await withCaller(settings) { caller in
            server.pause(true)
            for _ in 0..<8 {
                let outcome = await caller.claim(.fresh(), patience: .milliseconds(20))
                #expect(outcome == .unavailable(.timeout))
            }
            #expect(caller.store.statistics.breaker == .closed)
            for _ in 0..<5 {
                let outcome = await caller.claim(.fresh(), patience: .milliseconds(300))
                #expect(outcome == .unavailable(.timeout))
            }
            #expect(caller.store.statistics.breaker == .open)
            server.pause(false)
        }
    }

    @Test("R11: a claim whose request is gone before there is a connection is not made")
    func abandoned() async throws {
        let server = try await RedisServer()
        var settings = RedisSettings.single(server)
        settings.connectTimeout = .seconds(60)
        server.pause(true)
        let store = RedisStore(settings: settings, events: { _ in })
        try await TestLoop().run { resident in
            let session = store.makeSession(on: resident.loop)
            defer { session.close() }
            let waiter = Waiter(loop: resident.loop)
            let token = Claim.fresh(age: -60)
            let outcome = await session.claim(
                token, waiter: waiter, until: .now.advanced(by: .milliseconds(50)))
            #expect(outcome == .unavailable(.timeout))
            server.pause(false)
            await session.warmUp(waiter: waiter, until: .now.advanced(by: .seconds(20)))
            let again = await session.claim(
                token.again(), waiter: waiter, until: .now.advanced(by: .seconds(20)))
            #expect(again == .claimed)
        }
    }

    @Test("R12: a full server (noeviction) is full; claims that it has are reused")
    func full() async throws {
        let server = try await RedisServer(["maxmemory-policy noeviction"])
        try await withCaller(.single(server)) { caller in
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .claimed)
            try server.cli("config", "set", "maxmemory", "1")
            #expect(await caller.claim(.fresh()) == .full)
            // Redis refuses the command before it looks at the key.
            #expect(await caller.claim(token.again()) == .full)
            #expect(await caller.inspect(token) == .reused)
            #expect(caller.store.statistics.breaker == .closed)
            #expect(caller.events.text.contains("raise maxmemory"))
            try server.cli("config", "set", "maxmemory", "0")
            #expect(await caller.claim(.fresh()) == .claimed)
            #expect(await caller.claim(token.again()) == .reused)
        }
    }

    @Test("R12: a server that evicts is refused with what to set, and used once that is set")
    func evicting() async throws {
        let server = try await RedisServer(["maxmemory 100mb", "maxmemory-policy allkeys-lru"])
        try await withCaller(.single(server)) { caller in
            for _ in 0..<8 {
                #expect(await caller.claim(.fresh()) == .unavailable(.evicting))
            }
            #expect(caller.events.text.contains("maxmemory-policy noeviction"))
            try server.cli("config", "set", "maxmemory-policy", "noeviction")
            try await until("it is used") { await caller.claim(.fresh(age: -5)) == .claimed }
        }
    }

    @Test("R12: a server that evicts is used with a warning where the settings accept it")
    func evictionAccepted() async throws {
        let server = try await RedisServer(["maxmemory 100mb", "maxmemory-policy volatile-ttl"])
        var settings = RedisSettings.single(server)
        settings.acceptsEviction = true
        try await withCaller(settings) { caller in
            #expect(await caller.claim(.fresh()) == .claimed)
            #expect(caller.events.text.contains("warning: a full memory drops claims"))
        }
    }

    @Test("a database of a number has its own claims; one that does not exist is said")
    func databases() async throws {
        let server = try await RedisServer()
        var one = RedisSettings.single(server)
        one.database = 3
        var other = RedisSettings.single(server)
        other.database = 4
        let token = Claim.fresh(age: -5)
        try await withCaller(one) { #expect(await $0.claim(token) == .claimed) }
        try await withCaller(other) { #expect(await $0.claim(token) == .claimed) }
        try await withCaller(one) { #expect(await $0.claim(token) == .reused) }
        #expect(try server.cli("-n", "3", "dbsize") == "2")
        #expect(try server.cli("-n", "0", "dbsize") == "0")
        var wrong = RedisSettings.single(server)
        wrong.database = 400
        try await withCaller(wrong) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.protocolError))
            #expect(caller.events.text.contains("no database 400"))
        }
    }
}
