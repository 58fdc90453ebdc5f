import Reactor
import Testing

@Suite("Backlog")
struct BacklogTests {
    @Test("what comes while a turn is worked off is for the next one, in order")
    func turns() {
        var backlog = Backlog<Int>()
        #expect(backlog.take() == [])
        for turn in 0..<3 {
            backlog.append(turn)
            backlog.append(turn + 10)
            let taken = backlog.take()
            #expect(backlog.isEmpty)
            backlog.append(turn + 20)
            #expect(taken == [turn, turn + 10])
            backlog.reuse(taken)
            #expect(backlog.take() == [turn + 20])
        }
    }

    @Test("nothing is left of what is forgotten, nor of a turn whose memory serves again")
    func forgets() {
        var backlog = Backlog<Int>()
        backlog.append(1)
        backlog.reuse(backlog.take())
        #expect(backlog.isEmpty && backlog.take() == [])
        backlog.append(2)
        backlog.removeAll()
        #expect(backlog.isEmpty && backlog.take() == [])
    }
}
