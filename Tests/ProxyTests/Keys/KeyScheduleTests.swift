import Reactor
import TestKit
import Testing

@testable import Proxy

private let minute: Int64 = 60
private let hour: Int64 = 3600

@Suite("Key schedule")
struct KeyScheduleTests {
    /// A schedule with its own clock, in seconds.
    private final class Run {
        var schedule: KeySchedule
        var random: SeededGenerator
        var now = MonotonicInstant(nanoseconds: 0)

        init(seed: UInt64 = 1, _ intervals: KeySchedule.Intervals = .url) {
            schedule = KeySchedule(intervals, now: now)
            random = SeededGenerator(seed: seed)
        }

        func step() -> KeySchedule.Step {
            schedule.step(at: now)
        }

        func succeed(freshness: Int64? = nil) {
            schedule.succeeded(
                at: now, freshness: freshness.map { .seconds($0) }, using: &random)
        }

        func fail() {
            schedule.failed(at: now, using: &random)
        }

        func pass(_ seconds: Double) {
            // Up, so that a wait that was asked for is over.
            let nanoseconds = (seconds * 1e9).rounded(.up)
            now = now.advanced(by: .nanoseconds(Int64(nanoseconds)))
        }

        /// Seconds until the end of the wait that the schedule asks for; nil when it asks for a
        /// fetch.
        func wait() -> Double? {
            guard case .wait(let until) = step() else { return nil }
            return until == .never ? .infinity : Double(until.nanoseconds - now.nanoseconds) / 1e9
        }

        /// Fetches and waits as the schedule asks, failing every time, and returns the waits.
        func failuresInRow(_ count: Int) -> [Double] {
            var waits: [Double] = []
            while waits.count < count {
                if step() == .fetch { fail() }
                guard let wait = wait() else { return waits }
                waits.append(wait)
                pass(wait)
            }
            return waits
        }
    }

    @Test("prefetches: the first step is to fetch")
    func prefetch() {
        let run = Run()
        #expect(run.step() == .fetch)
    }

    @Test("K3: has one fetch under way at most")
    func singleFlight() {
        let run = Run()
        #expect(run.step() == .fetch)
        run.schedule.refetchRequested(at: run.now)
        run.pass(1000)
        #expect(run.step() == .wait(until: .never))
    }

    @Test(
        "K6: renews when the origin says so, never sooner than in 5 minutes nor later than in 5 hours",
        arguments: [
            (nil, 5 * hour), (0, 5 * minute), (1, 5 * minute), (299, 5 * minute), (hour, hour),
            (6 * hour, 5 * hour), (10 * 365 * 24 * hour, 5 * hour), (Int64.max, 5 * hour),
        ] as [(Int64?, Int64)])
    func refresh(freshness: Int64?, expected: Int64) throws {
        var waits: Set<Double> = []
        for seed in 0..<200 as Range<UInt64> {
            let run = Run(seed: seed)
            #expect(run.step() == .fetch)
            run.succeed(freshness: freshness)
            let wait = try #require(run.wait())
            #expect(abs(wait - Double(expected)) <= Double(expected) * 0.1001)
            #expect(wait >= Double(5 * minute))
            waits.insert(wait)
        }
        // A fleet that started together does not fetch together.
        #expect(waits.count > 80)
    }

    @Test("K6: good keys are renewed before they become too old, whatever the jitter")
    func renewedInTime() throws {
        for seed in 0..<500 as Range<UInt64> {
            let run = Run(seed: seed)
            _ = run.step()
            run.succeed()
            run.pass(try #require(run.wait()))
            #expect(run.step() == .fetch)
            #expect(run.schedule.isUsable(at: run.now.advanced(by: .seconds(25 * minute))))
        }
    }

    @Test("K1: without keys it tries again after 1, 2, 4 … 60 seconds, and goes on for ever")
    func retriesWithoutKeys() {
        let run = Run()
        let waits = run.failuresInRow(200)
        for (index, wait) in waits.enumerated() {
            let nominal = Double(min(60, 1 << min(index, 10)))
            #expect(abs(wait - nominal) <= nominal * 0.1001, "wait \(index)")
        }
        #expect(waits.count == 200)
    }

    @Test("K1: recovers from a first failure without any help")
    func recovers() {
        let run = Run()
        _ = run.failuresInRow(3)
        #expect(!run.schedule.isUsable(at: run.now))
        #expect(run.step() == .fetch)
        run.succeed()
        #expect(run.schedule.isUsable(at: run.now))
    }

    @Test("K2: good keys survive every failure until they are 6 hours old, to the second")
    func bridging() throws {
        let run = Run()
        _ = run.step()
        run.pass(2)
        run.succeed()
        // Their age counts from the request.
        let limit = MonotonicInstant(nanoseconds: 0).advanced(by: .seconds(6 * hour))
        #expect(run.schedule.usableUntil == limit)
        run.pass(try #require(run.wait()))
        var waits: [Double] = []
        while run.now < limit {
            #expect(run.schedule.isUsable(at: run.now))
            if run.step() == .fetch { run.fail() }
            #expect(run.schedule.usableUntil == limit)
            let wait = try #require(run.wait())
            waits.append(wait)
            run.pass(wait)
        }
        #expect(run.now.microseconds(since: limit) == 0)
        #expect(!run.schedule.isUsable(at: limit))
        // An attempt falls on that very moment; from there on it tries as if there never were any
        // keys.
        #expect(run.step() == .fetch)
        #expect(waits.max().map { $0 > 250 && $0 <= 330 } == true)
        run.fail()
        #expect(try #require(run.wait()) <= 66)
    }

    @Test("K2: a long outage that ends leaves no trace")
    func afterOutage() throws {
        let run = Run()
        _ = run.failuresInRow(50)
        _ = run.step()
        run.succeed()
        run.pass(try #require(run.wait()))
        _ = run.step()
        run.fail()
        #expect(try #require(run.wait()) < 1.2)
    }

    @Test("K3: 10,000 tokens with unknown kids cost one fetch in each cool-down")
    func flood() {
        let run = Run()
        var starts: [MonotonicInstant] = []
        for _ in 0..<10_000 {
            if run.step() == .fetch {
                starts.append(run.now)
                run.succeed()
            }
            run.schedule.refetchRequested(at: run.now)
            run.pass(0.025)
        }
        for (earlier, later) in zip(starts.dropFirst(), starts.dropFirst(2)) {
            #expect(later.microseconds(since: earlier) >= 30_000_000)
        }
        // The planned one, and those for 250 seconds.
        #expect(starts.count == 1 + 9)
    }

    @Test("K3: a flood while the origin is down costs no more")
    func floodDuringOutage() throws {
        let run = Run()
        _ = run.step()
        run.succeed()
        run.pass(100)
        var starts: [MonotonicInstant] = []
        for _ in 0..<24_000 {
            run.schedule.refetchRequested(at: run.now)
            if run.step() == .fetch {
                starts.append(run.now)
                run.fail()
            }
            run.pass(0.025)
        }
        // Ten minutes: the back-off's own first five attempts, then one in 30 seconds.
        #expect(starts.count <= 5 + 20)
        #expect(run.schedule.usableUntil != nil)
    }

    @Test(
        "K4: a key just rotated in is fetched when the cool-down ends, however often others asked")
    func coolDownIsNotProlonged() throws {
        let run = Run()
        _ = run.step()
        run.succeed()
        run.schedule.refetchRequested(at: run.now)
        #expect(run.step() == .fetch)
        run.succeed()
        for second in 0..<29 {
            run.schedule.refetchRequested(at: run.now)
            #expect(abs(try #require(run.wait()) - Double(30 - second)) < 0.001)
            run.pass(1)
        }
        run.pass(1)
        #expect(run.step() == .fetch)
    }

    @Test("K4: outside a cool-down a refetch starts at once", arguments: [0, 31] as [Double])
    func immediateRefetch(pause: Double) {
        let run = Run()
        // A planned fetch begins no cool-down.
        _ = run.step()
        run.succeed()
        for _ in 0..<2 {
            run.pass(pause)
            #expect(run.step() != .fetch)
            run.schedule.refetchRequested(at: run.now)
            #expect(run.step() == .fetch)
            run.succeed()
            run.pass(31)
        }
    }

    @Test(
        "keys of an earlier run are usable for what is left of their 6 hours, and renewed at once")
    func restored() {
        let run = Run()
        run.pass(1000)
        run.schedule.restored(fetchedAt: MonotonicInstant(nanoseconds: 0))
        #expect(run.schedule.isUsable(at: run.now))
        #expect(run.step() == .fetch)
        run.fail()
        #expect(!run.schedule.isUsable(at: .init(nanoseconds: 6 * hour * 1_000_000_000)))
        #expect(run.schedule.isUsable(at: .init(nanoseconds: 6 * hour * 1_000_000_000 - 1)))
    }

    @Test("a file is looked at every 2 seconds, and its keys do not age")
    func file() throws {
        let run = Run(.file)
        _ = run.step()
        run.succeed(freshness: 9999)
        #expect(run.schedule.usableUntil == .never)
        #expect(try #require(run.wait()) == 2)
        for _ in 0..<100 {
            run.pass(2)
            #expect(run.step() == .fetch)
            run.fail()
            #expect(run.schedule.isUsable(at: run.now))
            #expect(try #require(run.wait()) == 2)
        }
    }

    @Test(
        "K1-K4, K6: whatever happens in whatever order, the rules hold",
        arguments: 0..<60 as Range<UInt64>)
    func anyOrder(seed: UInt64) {
        let run = Run(seed: seed)
        var events = SeededGenerator(seed: seed &+ 1000)
        var inFlight = false
        var requestedAt: MonotonicInstant?
        var goodSince: MonotonicInstant?
        for _ in 0..<4000 {
            switch run.step() {
            case .fetch:
                #expect(!inFlight)
                inFlight = true
                requestedAt = run.now
            case .wait(let until):
                #expect(until > run.now)
                if !inFlight {
                    // Never longer than a refresh with its jitter, and without keys never longer
                    // than a minute.
                    let longest: Int64 = run.schedule.isUsable(at: run.now) ? 5 * hour + 1801 : 67
                    #expect(until <= run.now.advanced(by: .seconds(longest)))
                }
            }
            let limit = goodSince?.advanced(by: .seconds(6 * hour))
            #expect(run.schedule.isUsable(at: run.now) == (limit.map { run.now < $0 } ?? false))
            switch UInt8.random(in: 0..<6, using: &events) {
            case 0 where inFlight:
                run.succeed(freshness: Int64.random(in: 0...(7 * hour), using: &events))
                goodSince = requestedAt
                inFlight = false
            case 1 where inFlight, 2 where inFlight:
                run.fail()
                inFlight = false
            case 3: run.schedule.refetchRequested(at: run.now)
            case 4: run.pass(.random(in: 0...5, using: &events))
            default: run.pass(.random(in: 0...2000, using: &events))
            }
        }
    }
}

@Suite("Failure notices")
struct FailureNoticeTests {
    @Test("say each change, and then once in five minutes")
    func reminders() {
        var notice = FailureNotice()
        let events: [(second: Int64, result: KeyRefreshResult, isBridged: Bool, isSaid: Bool)] = [
            (0, .connect, true, true), (1, .connect, true, false), (299, .connect, true, false),
            (300, .connect, true, true), (301, .connect, true, false), (302, .tls, true, true),
            (303, .tls, false, true), (304, .tls, false, false),
        ]
        for (second, result, isBridged, isSaid) in events {
            let now = MonotonicInstant(nanoseconds: second * 1_000_000_000)
            let said = notice.failed(.init(result: result, isBridged: isBridged), at: now)
            #expect(said == isSaid, "second \(second)")
        }
        let ended = [notice.succeeded(), notice.succeeded()]
        #expect(ended == [true, false])
    }
}
