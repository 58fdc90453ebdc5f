import Replay
import TestKit
import Testing

@Suite("Histories of the store google")
struct GoogleHistoryTests {
    @Test("R1, R16: claims and restarts of the proxy", arguments: ClaimHistory.seeds(4))
    func histories(seed: UInt64) async throws {
        let google = try await FakeGoogle.spending()
        let subject = ClaimSubject(crash: .remembers, followsClock: false, releases: false) { _ in
            try google.open()
        }
        let tally = try await ClaimHistory.check(subject, seed: seed)
        #expect(tally["claimed", default: 0] > 10 && tally["reused", default: 0] > 10)
    }
}
