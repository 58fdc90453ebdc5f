import Replay
import TestKit
import Testing

@Suite("Histories of the store redis", .enabled(if: RedisServer.isInstalled))
struct RedisHistoryTests {
    /// A store that has connected once, so that it knows since when it can vouch for tokens.
    private static func connected(_ settings: RedisSettings) async throws -> RedisStore {
        let caller = try RedisCaller(settings)
        await caller.open()
        await caller.close()
        return caller.store
    }

    @Test(
        "R1, R2, R9: claims, releases and restarts of the proxy", arguments: ClaimHistory.seeds(4))
    func histories(seed: UInt64) async throws {
        let server = try await RedisServer()
        let subject = ClaimSubject(crash: .remembers, followsClock: false) { _ in
            try await Self.connected(.single(server))
        }
        let tally = try await ClaimHistory.check(subject, seed: seed)
        #expect(tally["claimed", default: 0] > 10 && tally["reused", default: 0] > 10)
    }

    @Test("R13: claims, releases, and a server that is flushed", arguments: ClaimHistory.seeds(4))
    func flushes(seed: UInt64) async throws {
        let server = try await RedisServer()
        let subject = ClaimSubject(crash: .forgets, followsClock: false) { _ in
            try server.cli("flushall")
            return try await Self.connected(.single(server))
        }
        try await ClaimHistory.check(subject, seed: seed)
    }
}
