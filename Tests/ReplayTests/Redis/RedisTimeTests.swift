import Reactor
import Testing

@testable import Replay

@Suite("The clocks of Redis servers")
struct RedisTimeTests {
    private static let hour: Int64 = 3600

    /// A world with a server's clock, ours, and a monotonic one.
    private struct World {
        let ends = RedisClaimEnds()
        /// Seconds.
        var now: Int64 = 1_000_000
        var server: Int64
        var wall: Int64

        init(server: Int64 = 1_700_000_000, wall: Int64 = 1_700_000_000) {
            self.server = server
            self.wall = wall
        }

        mutating func pass(_ seconds: Int64) {
            now += seconds
            server += seconds
            wall += seconds
        }

        private var instant: MonotonicInstant {
            MonotonicInstant(nanoseconds: now * 1_000_000_000)
        }

        /// When the entry vanishes, in seconds of the server's clock.
        func claim(until retainedUntil: Int64) -> Int64 {
            ends.end(
                retainedUntil: retainedUntil, server: server * 1000, wall: wall * 1000,
                at: instant) / 1000
        }

        func mayBeForgotten(_ retainedUntil: Int64) -> Bool {
            ends.mayBeForgotten(
                retainedUntil: retainedUntil, server: server * 1000, at: instant)
        }
    }

    @Test(
        "R4: an entry outlives its token by five minutes, whatever constant skew the clocks have",
        arguments: [-86_400, -3600, -10, 0, 10, 3600, 86_400] as [Int64])
    func constantSkew(skew: Int64) {
        var world = World(server: 1_700_000_000 + skew)
        let retainedUntil = world.wall + 300
        let end = world.claim(until: retainedUntil)
        world.pass(299)
        #expect(world.server + 300 < end)
        #expect(!world.mayBeForgotten(retainedUntil))
    }

    @Test("R4: our clock goes back: exactly the tokens whose entries are gone are expired")
    func backwards() {
        var world = World()
        let first = world.wall + 100
        let last = world.wall + 1500
        let ends = [world.claim(until: first), world.claim(until: last)]
        world.pass(1000)
        world.wall -= Self.hour
        _ = world.claim(until: world.wall + 1)
        #expect(world.server >= ends[0] && world.mayBeForgotten(first))
        #expect(world.server < ends[1] && !world.mayBeForgotten(last))
        // When no token of before can be alive any more, the window is as wide as ever.
        for _ in 0..<70 {
            world.pass(60)
            _ = world.claim(until: world.wall + 300)
        }
        #expect(!world.mayBeForgotten(world.wall + 1))
    }

    @Test(
        "R4: our clock goes ahead and back again: what was claimed meanwhile is not claimed again")
    func forthAndBack() {
        var world = World(server: 1_700_000_000 + Self.hour)
        _ = world.claim(until: world.wall + 300)
        world.wall += Self.hour
        let token = world.wall + 60
        let end = world.claim(until: token)
        world.pass(30)
        world.wall -= Self.hour
        _ = world.claim(until: world.wall + 1)
        #expect(!world.mayBeForgotten(token))
        world.pass(400)
        #expect(world.server >= end && world.mayBeForgotten(token))
    }

    @Test("R4: the server's clock leaps ahead: what it dropped is expired")
    func serverLeaps() {
        var world = World()
        let token = world.wall + 300
        let end = world.claim(until: token)
        world.pass(10)
        world.server += 1000
        #expect(world.server >= end && world.mayBeForgotten(token))
        #expect(!world.mayBeForgotten(world.wall + 800))
    }

    @Test("numbers at the end of the range do not trap")
    func extremes() {
        let world = World()
        #expect(world.claim(until: .max) > 0)
        #expect(world.claim(until: .min) > 0)
        #expect(!world.mayBeForgotten(.max))
        #expect(world.mayBeForgotten(.min))
    }

    @Test("TIME gives the server's clock; anything else gives none")
    func serverClock() throws {
        let reply = { (seconds: String, micro: String) in
            let reply = RedisReply(.array)
            for text in [seconds, micro] {
                reply.append(RedisReply(.string, bytes: Array(text.utf8)))
            }
            return reply
        }
        let sent = MonotonicInstant(nanoseconds: 5_000_000_000)
        let clock = try #require(
            RedisServerClock(reply("1700000000", "250000"), sent: sent))
        #expect(clock.milliseconds(at: sent) == 1_700_000_000_250)
        #expect(clock.milliseconds(at: sent.advanced(by: .seconds(2))) == 1_700_000_002_250)
        for (seconds, micro) in [
            ("-1", "0"), ("x", "0"), ("1", "1000000"), ("99999999999999999999", "0"),
        ] {
            #expect(RedisServerClock(reply(seconds, micro), sent: sent) == nil)
        }
        #expect(RedisServerClock(RedisReply(.null), sent: sent) == nil)
    }

    @Test("R13: the memory starts at the youngest marker")
    func memory() {
        let memory = RedisMemory()
        let now = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        #expect(memory.reliableSince(wall: 1000, at: now) == 0)
        #expect(memory.adopt(900, wall: 1000, at: now))
        #expect(!memory.adopt(800, wall: 1000, at: now))
        #expect(memory.reliableSince(wall: 1000, at: now) == 900)
        #expect(memory.adopt(1001, wall: 1000, at: now))
        #expect(memory.reliableSince(wall: 1000, at: now) == 1001)
        #expect(memory.since == 1001)
    }

    @Test("R13: a marker far in the future closes the window for five minutes, not until then")
    func futureMarker() {
        let memory = RedisMemory()
        let now = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        memory.adopt(100_000, wall: 1000, at: now)
        #expect(memory.reliableSince(wall: 1000, at: now) == 1301)
        let later = now.advanced(by: .seconds(500))
        #expect(memory.reliableSince(wall: 1500, at: later) == 1301)
        // Our clock was wrong, not the other one.
        #expect(memory.reliableSince(wall: 100_500, at: later) == 100_000)
    }

    @Test(
        "R4, R13: after a flush, a clock that goes back does not bring back what is older",
        arguments: [60, 61, 120, 300, 301, 3000])
    func clockGoesBackAfterFlush(seconds: Int64) {
        let memory = RedisMemory()
        let now = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        memory.adopt(100_001, wall: 100_000, at: now)
        #expect(memory.reliableSince(wall: 100_000, at: now) == 100_001)
        for passed in [1, 100, 3599] as [Int64] {
            let later = now.advanced(by: .seconds(passed))
            let wall = 100_000 + passed - seconds
            #expect(memory.reliableSince(wall: wall, at: later) == 100_001)
            // Another master, which remembers longer, changes nothing.
            #expect(!memory.adopt(90_000, wall: wall, at: later))
            #expect(memory.reliableSince(wall: wall, at: later) == 100_001)
        }
    }

    @Test("R4, R13: a flush that our clock, gone back, has yet to reach counts all the same")
    func flushAfterClockWentBack() {
        let memory = RedisMemory()
        let now = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        // The marker is by the clock of the server, which is right.
        memory.adopt(100_001, wall: 99_700, at: now)
        #expect(memory.reliableSince(wall: 99_700, at: now) == 100_001)
    }

    @Test("R13: a clock that was far ahead closes the store for no longer than a token lives")
    func clockWasFarAhead() {
        let memory = RedisMemory()
        let now = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        memory.adopt(9_000_001, wall: 9_000_000, at: now)
        let put = now.advanced(by: .seconds(10))
        #expect(memory.reliableSince(wall: 1010, at: put) == 9_000_001)
        let later = now.advanced(by: .seconds(3600))
        #expect(memory.reliableSince(wall: 4600, at: later) == 1301)
    }

    @Test("R13: memory that is lost while another marker lies in the future is lost all the same")
    func flushBelowFutureMarker() {
        let memory = RedisMemory()
        let now = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        memory.adopt(100_000, wall: 1000, at: now)
        let later = now.advanced(by: .seconds(500))
        #expect(memory.adopt(1501, wall: 1500, at: later))
        #expect(memory.reliableSince(wall: 1500, at: later) == 1501)
        // Reading the markers in turn moves nothing: a store would stay closed for ever.
        memory.adopt(100_007, wall: 1500, at: later)
        for passed in 1...100 as ClosedRange<Int64> {
            let next = later.advanced(by: .seconds(passed))
            for second in [100_000, 1501, 100_007] as [Int64] {
                #expect(!memory.adopt(second, wall: 1500 + passed, at: next))
            }
            #expect(memory.reliableSince(wall: 1500 + passed, at: next) == 1801)
        }
    }
}
