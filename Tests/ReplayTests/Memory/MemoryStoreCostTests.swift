import FoundationEssentials
import Replay
import TestKit
import Testing

/// Off by default: it takes the machine for itself, and a debug build says nothing.
///
///     PORTCULLIS_MEASURE=1 swift test -c release -Xswiftc -enable-testing --filter MemoryStoreCost
@Suite(
    "Memory store: cost", .serialized,
    .enabled(if: ProcessInfo.processInfo.environment["PORTCULLIS_MEASURE"] == "1"))
struct MemoryStoreCostTests {
    @Test("a claim takes less than a microsecond", arguments: [10_000, 5_000_000])
    func cost(entries: Int) async throws {
        let start = ClaimInstant.second(1000)
        let store = MemoryStore(entryLimit: max(entries + 1000, 1_000_000), now: start)
        let nanoseconds = try await ClaimCost.nanoseconds(
            in: store, entries: entries, now: .second(1001))
        print("\(entries) entries: \(Int(nanoseconds)) ns a claim, \(store.statistics)")
        #expect(store.statistics.entries == entries)
        #expect(nanoseconds < 1000)
    }
}
