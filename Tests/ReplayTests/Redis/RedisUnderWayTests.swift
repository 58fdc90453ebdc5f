import Reactor
import Synchronization
import TestKit
import Testing

@testable import Replay

@Suite("The store redis, with claims under way")
struct RedisUnderWayTests {
    @Test("R9: a claim that was sent before its server denied the marker may have been made")
    func deniedMarker() async throws {
        let isDenied = Mutex(false)
        let server = try FakeRedis { words in
            isDenied.withLock { $0 } && words.first == "GET" ? .send("-NOPERM no\r\n") : .usual
        }
        try await withCaller(server.settings) { caller in
            isDenied.withLock { $0 = true }
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .unavailable(.disconnected))
            #expect(server.commands.contains { $0.first == "SET" && $0.count > 4 })
            isDenied.withLock { $0 = false }
            try await until("it can be used again") { await caller.claim(.fresh()) == .claimed }
            #expect(await caller.claim(token.again()) == .reused)
        }
    }

    @Test("R9: a claim under way when its server turns out to evict may have been made")
    func evictingMeanwhile() async throws {
        let looks = Mutex(0)
        let server = try FakeRedis { words in
            let count = looks.withLock { looks in
                if words.first == "INFO" { looks += 1 }
                return looks
            }
            // The answers to the second look wait for a claim behind it.
            if count < 2 { return .usual }
            if words.first != "SET" { return .send("") }
            return .send(
                FakeRedis.information.replacing("noeviction", with: "allkeys-lr")
                    .replacing("maxmemory:0", with: "maxmemory:9")
                    + FakeRedis.bulk("\(FakeRedis.identity) 1000") + FakeRedis.time())
        }
        var settings = server.settings
        settings.lookInterval = .milliseconds(100)
        settings.stallTimeout = .seconds(60)
        try await withCaller(settings) { caller in
            try await until("it looks again") { looks.withLock { $0 } >= 2 }
            #expect(await caller.claim(.fresh()) == .unavailable(.disconnected))
            // What was never sent was certainly not made.
            #expect(await caller.claim(.fresh()) == .unavailable(.evicting))
        }
    }

    @Test("R9: no failure of what was sent promises that nothing was done")
    func afterSending() {
        let honest: Set<StoreFailure> = [.timeout, .disconnected, .protocolError]
        for failure in StoreFailure.allCases {
            #expect(honest.contains(failure.afterSending))
            if honest.contains(failure) { #expect(failure.afterSending == failure) }
        }
    }

    @Test("M1: after a reload the breaker goes by the new patience")
    func otherPatience() async throws {
        let server = try await RedisServer()
        var settings = RedisSettings.single(server)
        settings.patience = .seconds(60)
        settings.stallTimeout = .seconds(60)
        try await withCaller(settings) { caller in
            server.pause(true)
            caller.store.adopt(patience: .milliseconds(20))
            for _ in 0..<5 {
                let outcome = await caller.claim(.fresh(), patience: .milliseconds(20))
                #expect(outcome == .unavailable(.timeout))
            }
            #expect(caller.store.statistics.breaker == .open)
            server.pause(false)
        }
    }
}
