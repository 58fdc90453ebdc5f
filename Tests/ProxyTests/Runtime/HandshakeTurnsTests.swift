import Reactor
import TestKit
import Testing

@testable import Proxy

@Suite("Handshake turns")
struct HandshakeTurnsTests {
    @Test("a round of the loop has one step, and steps come in the order of the line")
    func oneStepARound() async throws {
        let resident = try TestLoop()
        let rounds = await resident.run { resident in
            let loop = resident.loop
            let turns = HandshakeTurns(loop: loop)
            let journal = Journal()
            for index in 0..<20 {
                Task.immediate(executorPreference: loop) {
                    let waiter = Waiter(loop: loop)
                    if await turns.take(waiter, until: .never) {
                        journal.turns.append((index, loop.now))
                    }
                    waiter.invalidate()
                }
            }
            let waiter = Waiter(loop: loop)
            while journal.turns.count < 20 {
                _ = await waiter.wait(until: loop.now.advanced(by: .milliseconds(1)))
            }
            #expect(journal.turns.map(\.index) == Array(0..<20))
            return Set(journal.turns.map(\.time.nanoseconds)).count
        }
        #expect(rounds == 20)
    }

    @Test("who waits too long leaves the line, and those behind go on")
    func deadline() async throws {
        let resident = try TestLoop()
        await resident.run { resident in
            let loop = resident.loop
            let turns = HandshakeTurns(loop: loop)
            let journal = Journal()
            let first = Waiter(loop: loop)
            #expect(await turns.take(first, until: .never))
            for index in 0..<3 {
                Task.immediate(executorPreference: loop) {
                    let waiter = Waiter(loop: loop)
                    // The middle one is late before it begins.
                    let deadline = index == 1 ? loop.now : .never
                    let got = await turns.take(waiter, until: deadline)
                    journal.turns.append((got ? index : -1, loop.now))
                    waiter.invalidate()
                }
            }
            let waiter = Waiter(loop: loop)
            while journal.turns.count < 3 {
                _ = await waiter.wait(until: loop.now.advanced(by: .milliseconds(1)))
            }
            #expect(journal.turns.map(\.index).sorted() == [-1, 0, 2])
        }
    }
}

private final class Journal {
    var turns: [(index: Int, time: MonotonicInstant)] = []
}
