import Reactor
import Replay
import TestKit
import Testing

@Suite("Memory store: tables and bytes")
struct MemoryStoreTableTests {
    private let start = ClaimInstant.second(1000)

    private func open(entryLimit: Int) async throws -> (store: MemoryStore, caller: ClaimCaller) {
        let store = MemoryStore(entryLimit: entryLimit, now: start)
        let caller = try ClaimCaller()
        await caller.open(store)
        return (store, caller)
    }

    @Test("R12: agrees with a dictionary although all keys want the same few slots")
    func crowded() async throws {
        for seed in 0..<20 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            let (store, caller) = try await open(entryLimit: 10_000)
            var known: [ClaimKey: Int64] = [:]
            var now = ClaimInstant.second(1001)
            for _ in 0..<600 {
                // One shard, and homes around the end of the table.
                let home: UInt64 = [0, 1, 14, 15, ~0, ~0 - 1].pick(using: &random)
                let key = ClaimKey(
                    high: 0, low: home ^ (.random(in: 0..<20, using: &random) << 20))
                let retainedUntil = now.wallSeconds + .random(in: 1...20, using: &random)
                let claim = Claim(
                    key: key, issuedAt: 1001, retainedUntil: retainedUntil, at: now)
                switch Int.random(in: 0..<10, using: &random) {
                case 0:
                    #expect(await caller.release(claim) == (known[key] != nil), "seed \(seed)")
                    known[key] = nil
                case 1:
                    now = .second(now.wallSeconds + 3)
                    while store.purge(at: now) {}
                    known = known.filter { $0.value > now.wallSeconds }
                default:
                    let expected: ClaimOutcome = known[key] == nil ? .claimed : .reused
                    #expect(await caller.claim(claim) == expected, "seed \(seed)")
                    known[key] = known[key] ?? retainedUntil
                }
                #expect(store.statistics.entries == known.count, "seed \(seed)")
            }
        }
    }

    @Test("R12: one crowded shard stops at what a table may hold, and forgets nothing")
    func overfullShard() async throws {
        let (store, caller) = try await open(entryLimit: 10_000)
        let claims = (0..<4000 as Range<UInt64>).map { number in
            Claim(
                key: ClaimKey(high: 0, low: number &* 0x9E37_79B9_7F4A_7C15), issuedAt: 1001,
                retainedUntil: 1300, at: .second(1001))
        }
        let outcomes = await caller.claimAll(claims)
        #expect(outcomes.count { $0 == .claimed } == 3584)
        #expect(outcomes.count { $0 == .full } == 416)
        #expect(await caller.claimAll(claims).count { $0 == .reused } == 3584)
        #expect(store.statistics.entries == 3584)
    }

    @Test("R12: bytes are counted, stay within their limit, and go back when claims expire")
    func bytes() async throws {
        let (store, caller) = try await open(entryLimit: 20_000)
        let empty = try #require(store.statistics.bytes)
        let limit = try #require(store.statistics.byteLimit)
        let claims = (0..<20_000).map { Claim.of($0, at: .second(1001)) }
        #expect(await caller.claimAll(claims).allSatisfy { $0 == .claimed })
        let full = try #require(store.statistics.bytes)
        #expect(full > 20_000 * 24 + empty)
        #expect(full < 20_000 * 72 + empty)
        #expect(full <= limit)
        while store.purge(at: .second(1301)) {}
        #expect(try #require(store.statistics.bytes) < empty + 64 * 16 * 24 + 1)
    }

    @Test("R12: a million claims take at most 39 bytes each")
    func statedBytes() throws {
        let statistics = MemoryStore(entryLimit: 1_000_000, now: start).statistics
        #expect(try #require(statistics.byteLimit) < 39_000_000)
    }

    @Test("purging goes in steps, says when there is more, and comes to everything")
    func steps() async throws {
        let (store, caller) = try await open(entryLimit: 1_000_000)
        let claims = (0..<2000).map { Claim.of($0, at: .second(1001), retainedUntil: 1100) }
        #expect(await caller.claimAll(claims).allSatisfy { $0 == .claimed })
        var left = [2000]
        while store.purge(at: .second(1100)) {
            left.append(try #require(store.statistics.entries))
        }
        #expect(store.statistics.entries == 0)
        // 391 shards, 8 at a time.
        #expect(left.count == 49)
        #expect(zip(left, left.dropFirst()).allSatisfy { $0 - $1 < 150 })
    }

    @Test("purging comes to everything although a new second begins between its steps")
    func stepsAcrossSeconds() async throws {
        let (store, caller) = try await open(entryLimit: 1_000_000)
        let claims = (0..<2000).map {
            Claim.of($0, at: .second(1001), retainedUntil: $0.isMultiple(of: 2) ? 1100 : 1101)
        }
        #expect(await caller.claimAll(claims).allSatisfy { $0 == .claimed })
        #expect(store.purge(at: .second(1100)))
        while store.purge(at: .second(1101)) {}
        #expect(store.statistics.entries == 0)
    }
}
