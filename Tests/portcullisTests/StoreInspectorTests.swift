import Configuration
import Reactor
import Replay
import TestKit
import Testing

@testable import portcullis

@Suite("Looking into the claims of a running proxy")
struct StoreInspectorTests {
    private func configuration(stateDirectory: String) throws -> Configuration {
        let loaded = Configuration.load(
            text: OneRouteFile.text(
                server: "state_directory = \"\(stateDirectory)\"",
                route: "replay = \"monitor\"", more: "[replay]\nmax_entries = 1000"),
            fileName: "proxy.conf", surroundings: .empty)
        return try #require(loaded.configuration)
    }

    private func claim(_ number: UInt64, issued seconds: Int64) -> Claim {
        let now = ClaimInstant(wallMicroseconds: Syscalls.wallMicroseconds(), monotonic: .now)
        return Claim(
            key: ClaimKey(high: number, low: 7), issuedAt: now.wallSeconds + seconds,
            retainedUntil: now.wallSeconds + 300, at: now)
    }

    @Test("a file is read beside the proxy that claims in it, and nothing is claimed")
    func file() throws {
        let folder = try TemporaryFolder()
        let configuration = try configuration(stateDirectory: folder.path)
        let inspector = StoreInspector()
        let used = claim(1, issued: 10)
        guard case .unknown(let reason) = inspector.inspect(used, in: configuration) else {
            Issue.record("there is nothing yet")
            return
        }
        #expect(reason.contains("has no claims since this machine booted"))
        let store = try FileStore.open(
            directory: configuration.server.claimsDirectory, entryLimit: 1000, now: used.at,
            boot: .current())
        defer { store.close() }
        #expect(store.claim(used) == .claimed)
        #expect(inspector.inspect(used, in: configuration) == .answered(.reused))
        let fresh = claim(2, issued: 10)
        for _ in 0..<2 {
            #expect(inspector.inspect(fresh, in: configuration) == .answered(.claimed))
        }
        #expect(
            inspector.inspect(claim(3, issued: -60), in: configuration) == .answered(.predates))
        #expect(store.claim(fresh) == .claimed)
    }
}
