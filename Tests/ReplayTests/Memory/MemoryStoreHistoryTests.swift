import Replay
import TestKit
import Testing

@Suite("Memory store: histories")
struct MemoryStoreHistoryTests {
    @Test("R4, R12, R13: a random history agrees with the rules, whatever the clock does")
    func histories() async throws {
        var tally: [String: Int] = [:]
        for seed in ClaimHistory.seeds(60) {
            let subject = ClaimSubject(entryLimit: 12, crash: .forgets) { now in
                MemoryStore(entryLimit: 12, now: now)
            }
            let answers = try await ClaimHistory.check(subject, seed: seed)
            tally.merge(answers, uniquingKeysWith: +)
        }
        // A history says little about an answer that it never got.
        guard ClaimHistory.seeds(60).count > 1 else { return }
        for answer in ["claimed", "reused", "predates", "expired", "full"] {
            #expect(tally[answer, default: 0] > 30, "\(tally)")
        }
    }
}
