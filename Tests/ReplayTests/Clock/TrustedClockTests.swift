import Reactor
import Replay
import TestKit
import Testing

@Suite("Trusted clock")
struct TrustedClockTests {
    @Test("goes with a wall clock that nobody sets")
    func undisturbed() {
        let clock = TrustedClock(now: .second(1000))
        for second: Int64 in [1000, 1001, 1300, 90_000] {
            #expect(clock.trusted(.second(second)) == second)
        }
    }

    @Test("R4: a step forward is not believed until it has lasted")
    func forward() {
        let clock = TrustedClock(now: .second(1000), settling: .seconds(600))
        // A thousand seconds ahead of the monotonic clock from now on.
        #expect(clock.trusted(.second(2100, passed: -1000)) == 1100)
        #expect(clock.trusted(.second(2699, passed: -1000)) == 1699)
        #expect(clock.trusted(.second(2700, passed: -1000)) == 2700)
        #expect(clock.trusted(.second(2701, passed: -1000)) == 2701)
    }

    @Test("R4: a clock that was ahead for a while and is right again moved nothing")
    func forwardAndBack() {
        let clock = TrustedClock(now: .second(1000), settling: .seconds(600))
        #expect(clock.trusted(.second(2100, passed: -1000)) == 1100)
        #expect(clock.trusted(.second(1200)) == 1200)
        // The time ahead counts from its beginning, and this is a new one.
        #expect(clock.trusted(.second(2250, passed: -1000)) == 1250)
        #expect(clock.trusted(.second(2800, passed: -1000)) == 1800)
        #expect(clock.trusted(.second(2850, passed: -1000)) == 2850)
    }

    @Test("R4: a step back is believed at once, so entries only live longer")
    func back() {
        let clock = TrustedClock(now: .second(1000))
        #expect(clock.trusted(.second(100, passed: 1000)) == 100)
        #expect(clock.trusted(.second(150, passed: 1000)) == 150)
        // And the way back up is a step forward like any other.
        #expect(clock.trusted(.second(1200)) == 200)
    }

    @Test("R4: after a long time ahead the lowest reading of it is believed, not the last one")
    func lowest() {
        let clock = TrustedClock(now: .second(1000), settling: .seconds(600))
        #expect(clock.trusted(.second(1110, passed: -10)) == 1100)
        // A day ahead, at the very moment when ten seconds are believed.
        #expect(clock.trusted(.second(88_100, passed: -86_400)) == 1710)
    }

    @Test("corrections of a second or two are never doubted, nor followed forward")
    func corrections() {
        let clock = TrustedClock(now: .second(1000), settling: .seconds(600))
        #expect(clock.trusted(.second(1102, passed: -2)) == 1100)
        #expect(clock.trusted(.second(5002, passed: -2)) == 5000)
    }

    @Test("R4: agrees with the lowest of all readings of a while, whatever the clock does")
    func property() {
        for seed in 0..<200 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            var now = ClaimInstant.second(.random(in: 100_000...200_000, using: &random))
            let clock = TrustedClock(now: now, settling: .seconds(600))
            var readings = [now]
            for _ in 0..<150 {
                let passed = Int64.random(in: 0...300_000_000, using: &random)
                var step: Int64 = 0
                if Int.random(in: 0..<8, using: &random) == 0 {
                    let longest: Int64 = [2_500_000, 80_000_000].pick(using: &random)
                    step = .random(in: -longest...longest, using: &random)
                }
                now.wallMicroseconds += passed + step
                now.monotonic = now.monotonic.advanced(byNanoseconds: passed * 1000)
                readings.append(now)
                let trusted = clock.trusted(now)
                #expect(trusted <= lowest(readings, within: 600), "seed \(seed)")
                // What lasts is believed: after one time of settling that began with a lower
                // reading, a second one, and the 300 seconds that are between readings.
                #expect(trusted >= lowest(readings, within: 2400) - 3, "seed \(seed)")
            }
        }
    }

    /// The present time as the most careful of the readings of the last seconds has it.
    private func lowest(_ readings: [ClaimInstant], within seconds: Int64) -> Int64 {
        let now = readings[readings.count - 1].monotonic.nanoseconds
        return readings.filter { now - $0.monotonic.nanoseconds <= seconds * 1_000_000_000 }
            .map { ($0.wallMicroseconds + (now - $0.monotonic.nanoseconds) / 1000) / 1_000_000 }
            .min() ?? 0
    }
}
