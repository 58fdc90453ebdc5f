import Reactor
import Replay
import TestKit
import Testing

@Suite("Memory store")
struct MemoryStoreTests {
    private let start = ClaimInstant.second(1000)
    /// When the store, opened at `start`, can vouch for new tokens.
    private let later = ClaimInstant.second(1001)

    private func open(
        entryLimit: Int = 1000, settling: Duration = TrustedClock.defaultSettling
    ) async throws -> (store: MemoryStore, caller: ClaimCaller) {
        let store = MemoryStore(entryLimit: entryLimit, now: start, settling: settling)
        let caller = try ClaimCaller()
        await caller.open(store)
        return (store, caller)
    }

    private func purge(_ store: MemoryStore, at now: ClaimInstant) {
        while store.purge(at: now) {}
    }

    @Test("R1: of many copies on four loops exactly one is claimed, a hundred times over")
    func oneOfMany() async throws {
        let (store, first) = try await open()
        var callers = [first]
        for _ in 1..<4 {
            let caller = try ClaimCaller()
            await caller.open(store)
            callers.append(caller)
        }
        for round in 0..<100 as Range<UInt64> {
            let claims = [Claim](repeating: .of(round, at: later), count: 50)
            let outcomes = await withTaskGroup(of: [ClaimOutcome].self) { group in
                for caller in callers { group.addTask { await caller.claimAll(claims) } }
                return await group.reduce(into: []) { $0 += $1 }
            }
            #expect(outcomes.count { $0 == .claimed } == 1)
            #expect(outcomes.count { $0 == .reused } == 199)
        }
    }

    @Test("R4: a claim is remembered to the last second in which its token is accepted")
    func remembered() async throws {
        let (store, caller) = try await open()
        let claim = Claim.of(1, at: later, retainedUntil: 1300)
        #expect(await caller.claim(claim) == .claimed)
        purge(store, at: .second(1299))
        #expect(store.statistics.entries == 1)
        #expect(await caller.claim(claim) == .reused)
        purge(store, at: .second(1300))
        #expect(store.statistics.entries == 0)
    }

    @Test("R4: a clock that goes back does not open again what was forgotten")
    func clockGoesBack() async throws {
        let (store, caller) = try await open()
        let claim = Claim.of(1, at: later, retainedUntil: 1300)
        #expect(await caller.claim(claim) == .claimed)
        purge(store, at: .second(1300))
        #expect(await caller.claim(claim) == .expired)
        #expect(await caller.inspect(claim) == .expired)
        // And closes nothing else: a token that lives longer is as good as ever.
        var longer = claim
        longer.retainedUntil = 1301
        #expect(await caller.claim(longer) == .claimed)
    }

    @Test("R4: of all that one pass forgot, the latest end of life counts, in whatever order")
    func latestForgotten() async throws {
        let (store, caller) = try await open()
        // Neighbours in one table: the one that lives longer is come to first.
        let claims = [(1, 1200), (2, 1100)].map { low, retainedUntil in
            Claim(
                key: ClaimKey(high: 0, low: low), issuedAt: 1001, retainedUntil: retainedUntil,
                at: later)
        }
        #expect(await caller.claimAll(claims) == [.claimed, .claimed])
        purge(store, at: .second(1200))
        #expect(store.statistics.entries == 0)
        #expect(await caller.claimAll(claims) == [.expired, .expired])
    }

    @Test("R4: a clock that runs an hour ahead for a while forgets nothing and refuses nothing")
    func clockStepsForward() async throws {
        let (store, caller) = try await open()
        let claim = Claim.of(1, at: later)
        #expect(await caller.claim(claim) == .claimed)
        purge(store, at: .second(4610, passed: -3600))
        #expect(await caller.claim(claim) == .reused)
        #expect(await caller.claim(.of(2, at: later)) == .claimed)
    }

    @Test("R4: a clock that stays ahead is believed in the end")
    func clockSettles() async throws {
        let (store, caller) = try await open(settling: .seconds(600))
        #expect(await caller.claim(.of(1, at: later, retainedUntil: 2000)) == .claimed)
        purge(store, at: .second(4601, passed: -3600))
        #expect(store.statistics.entries == 1)
        purge(store, at: .second(5201, passed: -3600))
        #expect(store.statistics.entries == 0)
    }

    @Test("R9: a claim that was released can be made again, once")
    func release() async throws {
        let (store, caller) = try await open()
        let claim = Claim.of(1, at: later)
        #expect(await caller.claim(claim) == .claimed)
        #expect(await caller.release(claim))
        #expect(store.statistics.entries == 0)
        #expect(await caller.claim(claim) == .claimed)
        #expect(await caller.claim(claim) == .reused)
        #expect(await caller.release(.of(2, at: later)) == false)
    }

    @Test("R3: asking is not claiming")
    func inspect() async throws {
        let (store, caller) = try await open(entryLimit: 1)
        let claim = Claim.of(1, at: later)
        #expect(await caller.inspect(claim) == .claimed)
        #expect(await caller.inspect(.of(1, at: later, issuedAt: 1000)) == .predates)
        #expect(store.statistics.entries == 0)
        #expect(await caller.claim(claim) == .claimed)
        #expect(await caller.inspect(claim) == .reused)
        #expect(await caller.inspect(.of(2, at: later)) == .full)
    }

    @Test("R12: full refuses what is new and forgets nothing; what expires makes room")
    func full() async throws {
        let (store, caller) = try await open(entryLimit: 100)
        let claims = (0..<150).map { Claim.of($0, at: later, retainedUntil: 1100 + Int64($0)) }
        let outcomes = await caller.claimAll(claims)
        #expect(outcomes[..<100].allSatisfy { $0 == .claimed })
        #expect(outcomes[100...].allSatisfy { $0 == .full })
        #expect(await caller.claimAll(Array(claims[..<100])).allSatisfy { $0 == .reused })
        purge(store, at: .second(1109))
        #expect(store.statistics.entries == 90)
        let late = await caller.claimAll(Array(claims[100...]))
        #expect(late.count { $0 == .claimed } == 10)
        #expect(store.statistics.entries == store.statistics.entryLimit)
    }

    @Test("R12: the limit is exact although four loops fill the store at the same time")
    func exactLimit() async throws {
        let (store, first) = try await open(entryLimit: 2000)
        var callers = [first]
        for _ in 1..<4 {
            let caller = try ClaimCaller()
            await caller.open(store)
            callers.append(caller)
        }
        let outcomes = await withTaskGroup(of: [ClaimOutcome].self) { group in
            for (index, caller) in callers.enumerated() {
                let numbers = UInt64(index) * 1000..<UInt64(index + 1) * 1000
                let claims = numbers.map { Claim.of($0, at: later) }
                group.addTask { await caller.claimAll(claims) }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(outcomes.count { $0 == .claimed } == 2000)
        #expect(outcomes.count { $0 == .full } == 2000)
    }

    @Test("R12: a store without room for anything refuses everything", arguments: [0, -1])
    func noRoom(entryLimit: Int) async throws {
        let (_, caller) = try await open(entryLimit: entryLimit)
        #expect(await caller.claim(.of(1, at: later)) == .full)
    }

    @Test("R13: an empty store vouches for nothing that was issued before, and remembers it")
    func predates() async throws {
        let (store, caller) = try await open()
        #expect(store.reliableSince == 1001)
        let old = Claim.of(1, at: later, issuedAt: 1000)
        #expect(await caller.claim(old) == .predates)
        #expect(await caller.claim(old) == .reused)
        #expect(await caller.claim(.of(2, at: later, issuedAt: 1001)) == .claimed)
    }
}
