import Reactor
import Testing

@testable import Replay

@Suite("The circuit breaker")
struct CircuitBreakerTests {
    private let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)

    private func at(_ seconds: Double) -> MonotonicInstant {
        start.advanced(by: .seconds(seconds))
    }

    /// Fails until it opens, at second 0.
    private func opened() -> CircuitBreaker {
        let breaker = CircuitBreaker()
        for _ in 0..<5 { breaker.failed(breaker.admit(at: start), at: start) }
        return breaker
    }

    @Test("five failures in a row open it, four do not, and a success starts the count anew")
    func threshold() {
        let breaker = CircuitBreaker()
        for _ in 0..<4 { breaker.failed(.pass, at: start) }
        #expect(breaker.admit(at: start) == .pass)
        breaker.succeeded(.pass)
        for _ in 0..<4 { breaker.failed(.pass, at: start) }
        #expect(breaker.state(at: start) == .closed)
        breaker.failed(.pass, at: start)
        #expect(breaker.admit(at: start) == .refuse)
        #expect(breaker.state(at: start) == .open)
    }

    @Test("after the pause one claim passes, to see; its success closes it")
    func probeSucceeds() {
        let breaker = opened()
        #expect(breaker.admit(at: at(0.79)) == .refuse)
        #expect(breaker.state(at: at(1.21)) == .halfOpen)
        #expect(breaker.admit(at: at(1.21)) == .probe)
        #expect(breaker.admit(at: at(1.21)) == .refuse)
        breaker.succeeded(.probe)
        #expect(breaker.admit(at: at(1.21)) == .pass)
        #expect(breaker.state(at: at(1.21)) == .closed)
    }

    @Test("each probe that fails doubles the pause, up to ten seconds")
    func probeFails() {
        let breaker = opened()
        var time = 0.0
        for pause in [1.0, 2, 4, 8, 10, 10] {
            #expect(breaker.admit(at: at(time + pause * 0.79)) == .refuse)
            time += pause * 1.21
            #expect(breaker.admit(at: at(time)) == .probe)
            breaker.failed(.probe, at: at(time))
        }
    }

    @Test("claims of before it opened neither close it nor make the pause longer")
    func stragglers() {
        let breaker = opened()
        breaker.succeeded(.pass)
        #expect(breaker.state(at: at(0.5)) == .open)
        for _ in 0..<10 { breaker.failed(.pass, at: at(0.7)) }
        #expect(breaker.admit(at: at(1.21)) == .probe)
    }

    @Test("a probe that tells nothing is followed by another; one that is lost, too")
    func lostProbe() {
        let breaker = opened()
        #expect(breaker.admit(at: at(2)) == .probe)
        breaker.forfeited(.probe)
        #expect(breaker.admit(at: at(2)) == .probe)
        #expect(breaker.admit(at: at(11.9)) == .refuse)
        #expect(breaker.admit(at: at(12.1)) == .probe)
    }

    @Test("a store that was seen at work by other means is used at once")
    func recovery() {
        let breaker = opened()
        breaker.recovered()
        #expect(breaker.admit(at: start) == .pass)
        for _ in 0..<4 { breaker.failed(.pass, at: start) }
        #expect(breaker.state(at: start) == .closed)
    }
}
