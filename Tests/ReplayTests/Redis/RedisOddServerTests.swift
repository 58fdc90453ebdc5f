import Foundation
import Reactor
import Synchronization
import TestKit
import Testing

@testable import Replay

@Suite("The store redis, with servers that misbehave")
struct RedisOddServerTests {
    @Test(
        "garbage instead of an answer is unavailable, and ends the connection",
        arguments: ["HTTP/1.1 400 Bad Request\r\n", "*2147483647\r\n", ":1:2\r\n", "$-2\r\nx\r\n"])
    func garbage(bytes: String) async throws {
        let server = try FakeRedis { words in
            words.first == "SET" && words.count > 4 ? .send(bytes) : .usual
        }
        try await withCaller(server.settings) { caller in
            let outcome = await caller.claim(.fresh())
            #expect(outcome == .unavailable(.protocolError))
            try await until("it connects again") { server.connectionCount >= 2 }
        }
    }

    @Test("a claim whose answer is lost is unavailable, and is never sent again")
    func lostAnswer() async throws {
        let server = try FakeRedis { words in
            words.first == "SET" && words.count > 4 ? .close : .usual
        }
        try await withCaller(server.settings) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.disconnected))
            try await until("it connects again") { server.connectionCount >= 2 }
            // A moment in which it could do so.
            try await until("the second connection is set up") {
                server.commands.count { $0.first == "INFO" } >= 2
            }
            #expect(server.commands.count { $0.first == "SET" && $0.count > 4 } == 1)
        }
    }

    @Test("a claim that waits for an answer for too long ends, and so does the connection")
    func silence() async throws {
        let server = try FakeRedis { words in
            words.first == "SET" && words.count > 4 ? .silence : .usual
        }
        var settings = server.settings
        settings.stallTimeout = .milliseconds(300)
        try await withCaller(settings) { caller in
            let waiting = await caller.claim(.fresh(), patience: .seconds(20))
            // TIME is answered, so the replies have lost their order: no answer can be believed.
            #expect(waiting == .unavailable(.timeout))
            try await until("it connects again") { server.connectionCount >= 2 }
        }
    }

    @Test("a reply that nobody asked for ends the connection")
    func unasked() async throws {
        let isFirst = Mutex(true)
        let server = try FakeRedis { words in
            if words.first != "TIME" || words.count > 1 { return .usual }
            return isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst ? .send(FakeRedis.time() + FakeRedis.bulk("extra")) : .usual
            }
        }
        try await withCaller(server.settings) { _ in
            try await until("it connects again") { server.connectionCount >= 2 }
        }
    }

    @Test(
        "R13: an empty memory starts by the later clock, ours or the server's, within reason",
        arguments: [(-100, 0), (100, 100), (3600, 300)] as [(Int64, Int64)])
    func emptyMemory(ahead: Int64, expected: Int64) async throws {
        let marker = Mutex<String?>(nil)
        let server = try FakeRedis { words in
            switch (words.first, words.count) {
            case ("TIME", _): .send(FakeRedis.time(ahead: ahead))
            case ("GET", _): .send(marker.withLock { $0.map(FakeRedis.bulk) ?? "$-1\r\n" })
            case ("SET", 4):
                marker.withLock { marker in
                    marker = words[2]
                    return .send("+OK\r\n")
                }
            default: .usual
            }
        }
        let before = Int64(Date.now.timeIntervalSince1970)
        let caller = try RedisCaller(server.settings)
        let store = caller.store
        try await TestLoop().run { resident in
            let session = store.makeSession(on: resident.loop)
            await session.warmUp(
                waiter: Waiter(loop: resident.loop), until: .now.advanced(by: .seconds(10)))
            session.close()
        }
        let after = Int64(Date.now.timeIntervalSince1970)
        #expect((before + expected...after + expected + 1).contains(store.reliableSince))
    }

    @Test("a log-in that is refused is denied; the password is in no event")
    func passwordIsSecret() async throws {
        let server = try FakeRedis { words in
            words.first == "AUTH"
                ? .send("-ERR unknown command 'AUTH', with args beginning with: 'hunter2'\r\n")
                : .usual
        }
        var settings = server.settings
        settings.username = "portcullis"
        settings.password = "hunter2"
        try await withCaller(settings) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.denied))
            #expect(caller.events.text.contains("refuses the log-in"))
            #expect(!caller.events.text.contains("hunter2"))
        }
    }

    @Test("a server that closes every connection is not asked in a busy loop")
    func backsOff() async throws {
        let server = try FakeRedis { _ in .close }
        let start = ContinuousClock.now
        try await withCaller(server.settings) { caller in
            try await until("some attempts") { server.connectionCount >= 5 }
            // 50 ms, doubled four times, less what the jitter takes.
            #expect(ContinuousClock.now - start > .milliseconds(500))
            guard case .unavailable = await caller.claim(.fresh()) else {
                Issue.record("a claim without a server")
                return
            }
        }
    }

    @Test("so many claims wait and no more: the rest is overloaded")
    func overloaded() async throws {
        let server = try FakeRedis { words in
            words.first == "SET" && words.count > 4 ? .silence : .usual
        }
        try await withCaller(server.settings) { caller in
            let outcomes = await withTaskGroup(of: ClaimOutcome.self) { group in
                for _ in 0..<(RedisNode.requestLimit + 100) {
                    group.addTask {
                        await caller.claim(.fresh(), patience: .milliseconds(900))
                    }
                }
                return await group.reduce(into: [ClaimOutcome]()) { $0.append($1) }
            }
            #expect(outcomes.contains(.unavailable(.overloaded)))
            #expect(!outcomes.contains(.claimed))
        }
    }

    @Test(
        "an error instead of an answer is unavailable by its kind, and said with what to do",
        arguments: [
            ("ERR syntax error", .unavailable(.protocolError), "Redis 6.2"),
            ("OOM command not allowed", .full, "raise maxmemory"),
            ("NOPERM this user has no permissions", .unavailable(.denied), "+set"),
            ("MISCONF cannot persist", .unavailable(.protocolError), "cannot save to disk"),
            ("READONLY You can't write", .unavailable(.protocolError), "redis+sentinel://"),
        ] as [(String, ClaimOutcome, String)])
    func refusals(error: String, outcome: ClaimOutcome, hint: String) async throws {
        let server = try FakeRedis { words in
            words.first == "SET" && words.count > 4 ? .send("-\(error)\r\n") : .usual
        }
        try await withCaller(server.settings) { caller in
            #expect(await caller.claim(.fresh()) == outcome)
            #expect(caller.events.text.contains(hint))
        }
    }

    @Test("a redirection outside a cluster, a replica, and no run_id are errors of the server")
    func otherErrors() async throws {
        let moved = try FakeRedis { words in
            words.first == "SET" && words.count > 4 ? .send("-MOVED 1 127.0.0.1:1\r\n") : .usual
        }
        try await withCaller(moved.settings) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.protocolError))
        }
        let replica = try FakeRedis { words in
            words.first == "INFO"
                ? .send(FakeRedis.information.replacing("role:master", with: "role:slavee"))
                : .usual
        }
        try await withCaller(replica.settings) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.protocolError))
            #expect(caller.events.text.contains("it is a replica"))
        }
        let nameless = try FakeRedis { words in
            words.first == "INFO" ? .send(FakeRedis.bulk("role:master\r\n")) : .usual
        }
        try await withCaller(nameless.settings) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.protocolError))
        }
    }

    @Test("a server that became another one behind the same address is asked anew, not believed")
    func anotherIdentity() async throws {
        let isOther = Mutex(false)
        let server = try FakeRedis { words in
            guard isOther.withLock({ $0 }), words.first == "GET" else { return .usual }
            return .send(FakeRedis.bulk("run2.replica2 1000"))
        }
        try await withCaller(server.settings) { caller in
            #expect(await caller.claim(.fresh()) == .claimed)
            isOther.withLock { $0 = true }
            #expect(await caller.claim(.fresh()) == .unavailable(.disconnected))
        }
    }

    @Test("R4: when the server's clock leaps ahead, tokens that it may have dropped are expired")
    func serverClockLeaps() async throws {
        let ahead = Mutex<Int64>(0)
        let server = try FakeRedis { words in
            words.first == "TIME" ? .send(FakeRedis.time(ahead: ahead.withLock { $0 })) : .usual
        }
        try await withCaller(server.settings) { caller in
            let token = Claim.fresh(life: 60)
            #expect(await caller.claim(token) == .claimed)
            ahead.withLock { $0 = 700 }
            // The SET itself may find nothing any more; the time behind it tells why.
            #expect(await caller.claim(.fresh(life: 60)) == .expired)
            #expect(await caller.claim(.fresh(life: 60)) == .expired)
            // What lives long enough is still known.
            #expect(await caller.claim(.fresh(life: 500)) == .claimed)
        }
    }

    @Test("R4: a server whose clock has always been an hour ahead keeps entries an hour longer")
    func serverClockIsAhead() async throws {
        let server = try FakeRedis { words in
            words.first == "TIME" ? .send(FakeRedis.time(ahead: 3600)) : .usual
        }
        try await withCaller(server.settings) { caller in
            let token = Claim.fresh(life: 60)
            #expect(await caller.claim(token) == .claimed)
            let set = try #require(server.commands.last { $0.first == "SET" })
            let end = try #require(Int64(set.last ?? ""))
            let least = (token.retainedUntil + 3600 + 300) * 1000
            #expect(least - 1500...least + 5000 ~= end)
        }
    }

    @Test("a claim is one SET NX PXAT, with the marker and the time asked in the same write")
    func commands() async throws {
        let server = try FakeRedis { _ in .usual }
        var settings = server.settings
        settings.lookInterval = .seconds(3600)
        try await withCaller(settings) { caller in
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .claimed)
            let words = server.commands.suffix(3)
            #expect(words.map { $0.first } == ["SET", "GET", "TIME"])
            let set = try #require(words.first)
            try #require(words.count == 3 && set.count == 6)
            #expect(set[1].hasPrefix("portcullis:") && set[1].utf8.count == 33)
            #expect(set[3...4] == ["NX", "PXAT"])
            #expect(Array(words)[1] == ["GET", "portcullis:epoch"])
        }
    }
}
