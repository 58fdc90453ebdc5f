internal import TestKit
import Testing

@testable import Replay

/// What a loop's requests claim in one turn is made in one transaction.
@Suite("File session")
struct FileSessionTests {
    let place: FileStorePlace

    init() throws {
        place = try FileStorePlace()
    }

    /// More than one transaction takes, so that turns begin and end in between.
    @Test("R1: of copies in one turn, one is given each token", arguments: [3, 64, 300])
    func copies(count: Int) async throws {
        let store = try place.open()
        let numbers = (0..<count).map { UInt64($0) }
        let claims = (numbers + numbers + numbers).shuffled().map { place.claim($0) }
        let caller = try ClaimCaller()
        await caller.open(store)
        // A turn whose memory was used before answers as well as a new one.
        let outcomes = await caller.claimTogether(claims)
        let later = await caller.claimTogether(claims)
        await caller.close()
        for number in numbers {
            let key = place.claim(number).key
            let given = zip(claims, outcomes).filter { $0.0.key == key }.map(\.1)
            #expect(given.count { $0 == .claimed } == 1)
            #expect(given.count { $0 == .reused } == 2)
        }
        #expect(later.allSatisfy { $0 == .reused })
        #expect(store.statistics.entries == count)
    }

    @Test("claims that are ready together share a transaction, 64 at most")
    func sharesTransactions() async throws {
        let store = try place.open()
        let caller = try ClaimCaller()
        await caller.open(store)
        let before = store.file.transactionCount
        _ = await caller.claimTogether((0..<130).map { place.claim($0) })
        await caller.close()
        #expect(store.file.transactionCount - before == 3)
    }

    @Test("R12: a store that gets full within a turn is full for what is new, and knows the rest")
    func fillsUp() async throws {
        let store = try place.open(entryLimit: 3)
        #expect(store.claim(place.claim(0)) == .claimed)
        let caller = try ClaimCaller()
        await caller.open(store)
        let numbers: [UInt64] = [1, 0, 2, 3, 1, 4, 0, 2]
        let outcomes = await caller.claimTogether(numbers.map { place.claim($0) })
        await caller.close()
        let wanted: [ClaimOutcome] = [
            .claimed, .reused, .claimed, .full, .reused, .full, .reused, .reused,
        ]
        #expect(outcomes == wanted)
        #expect(store.statistics.entries == 3)
    }

    @Test("R12: a file without room takes none of a turn, and knows what it has")
    func hasNoRoom() throws {
        // Two mebibytes, so that the limit is not what ends it.
        let store = try place.open(entryLimit: 1)
        var next: UInt64 = 0
        var turn: [TurnClaim]
        repeat {
            turn = (next..<next + 64).map { store.turnClaim(place.claim($0)) }
            turn.append(store.turnClaim(place.claim(0)))
            store.file.claim(&turn, entryLimit: .max)
            next += 64
        } while turn[0].outcome == .claimed && next < 100_000
        #expect(turn.dropLast().allSatisfy { $0.outcome == .full })
        #expect(turn.last?.outcome == .reused)
        #expect(store.statistics.entries == Int(next) - 64)
    }

    @Test("a session of a closed store says that it cannot be asked, to all of a turn")
    func closes() async throws {
        let store = try place.open()
        let caller = try ClaimCaller()
        await caller.open(store)
        store.close()
        let outcomes = await caller.claimTogether((0..<3).map { place.claim($0) })
        await caller.close()
        #expect(outcomes == [ClaimOutcome](repeating: .unavailable(.system), count: 3))
    }
}
