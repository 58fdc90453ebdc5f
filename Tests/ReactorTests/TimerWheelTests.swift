import TestKit
import Testing

@testable import Reactor

@Suite("Timer wheel")
struct TimerWheelTests {
    private static let slot = TimerWheel.slotNanoseconds
    private let start = MonotonicInstant(nanoseconds: 1_000 * slot)
    private let loop: EventLoop

    init() throws {
        // Never runs: a waiter only needs one to belong to.
        loop = try EventLoop()
    }

    private func waiter(_ deadline: MonotonicInstant) -> Waiter {
        let waiter = Waiter(loop: loop)
        waiter.deadline = deadline
        return waiter
    }

    private func instant(_ slots: Double) -> MonotonicInstant {
        start.advanced(byNanoseconds: Int64(slots * Double(Self.slot)))
    }

    @Test("a deadline fires within a slot after it, and never before", arguments: 0..<200)
    func precision(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var wheel = TimerWheel(now: start)
        // From the next moment to several turns of the wheel.
        let deadline = instant(Double.random(in: 0...2_000, using: &random))
        let waiter = waiter(deadline)
        wheel.file(waiter)
        var now = start
        while !waiter.isTimedOut {
            #expect(now <= deadline.advanced(byNanoseconds: Self.slot))
            guard now <= deadline.advanced(byNanoseconds: Self.slot) else { return }
            let step = Double.random(in: 0...0.9, using: &random)
            now = now.advanced(byNanoseconds: Int64(step * Double(Self.slot)))
            wheel.expire(upTo: now)
        }
        #expect(now >= deadline)
        #expect(waiter.slot == -1)
    }

    @Test("after a long sleep everything that is due fires, and nothing else")
    func longSleep() {
        var wheel = TimerWheel(now: start)
        let due = [0.5, 1, 511, 512, 513, 1_500, 4_999].map { waiter(instant($0)) }
        let later = [5_001.5, 5_600, 100_000].map { waiter(instant($0)) }
        for waiter in due + later { wheel.file(waiter) }
        wheel.expire(upTo: instant(5_000.9))
        #expect(due.map(\.isTimedOut) == due.map { _ in true })
        #expect(later.map(\.isTimedOut) == later.map { _ in false })
        wheel.expire(upTo: instant(5_003))
        #expect(later.map(\.isTimedOut) == [true, false, false])
    }

    @Test("a deadline that moves back leaves the entry where it is until its slot comes up")
    func later() {
        var wheel = TimerWheel(now: start)
        let waiter = waiter(instant(2))
        wheel.file(waiter)
        let filed: Int32 = waiter.slot
        waiter.deadline = instant(100)
        wheel.file(waiter)
        #expect(waiter.slot == filed)
        wheel.expire(upTo: instant(50))
        #expect(!waiter.isTimedOut && waiter.slot != filed && waiter.slot >= 0)
        wheel.expire(upTo: instant(101.5))
        #expect(waiter.isTimedOut)
    }

    @Test("a deadline that moves forward fires at the new time")
    func sooner() {
        var wheel = TimerWheel(now: start)
        let waiter = waiter(instant(400))
        wheel.file(waiter)
        waiter.deadline = instant(3)
        wheel.file(waiter)
        wheel.expire(upTo: instant(4.5))
        #expect(waiter.isTimedOut)
    }

    @Test("a waiter that nobody waits with leaves the wheel at its slot, without firing")
    func abandoned() {
        var wheel = TimerWheel(now: start)
        let waiter = waiter(instant(2))
        wheel.file(waiter)
        waiter.deadline = .never
        wheel.expire(upTo: instant(4))
        #expect(!waiter.isTimedOut && waiter.slot == -1)
        #expect(wheel.sleepMilliseconds(now: instant(4)) == -1)
    }

    @Test("removal takes out the first, the middle and the last of a slot, twice if need be")
    func removal() {
        for removed in 0..<3 {
            var wheel = TimerWheel(now: start)
            let waiters = (0..<3).map { _ in waiter(instant(5)) }
            for waiter in waiters { wheel.file(waiter) }
            wheel.remove(waiters[removed])
            wheel.remove(waiters[removed])
            wheel.expire(upTo: instant(7))
            #expect(waiters.map(\.isTimedOut) == (0..<3).map { $0 != removed })
        }
    }

    @Test("the loop may sleep until the next slot that holds anything, and not longer")
    func sleep() {
        var wheel = TimerWheel(now: start)
        #expect(wheel.sleepMilliseconds(now: start) == -1)
        wheel.file(waiter(instant(10)))
        let sleep = Int64(wheel.sleepMilliseconds(now: start)) * 1_000_000
        #expect(sleep >= 10 * Self.slot && sleep <= 12 * Self.slot)
        // More than a turn away: filed at the far end, looked at once on the way.
        wheel = TimerWheel(now: start)
        wheel.file(waiter(instant(100_000)))
        #expect(wheel.sleepMilliseconds(now: start) > 0)
    }

    @Test("a thousand deadlines that move at random fire when a plain list says so")
    func model() {
        var random = SeededGenerator(seed: 7)
        var wheel = TimerWheel(now: start)
        var waiters = (0..<1_000).map { _ in waiter(.never) }
        var now = start
        for _ in 0..<300 {
            for _ in 0..<20 {
                let waiter = waiters.pick(using: &random)
                waiter.deadline = now.advanced(
                    byNanoseconds: Int64.random(in: 1...(800 * Self.slot), using: &random))
                wheel.file(waiter)
            }
            now = now.advanced(byNanoseconds: Int64.random(in: 0...(9 * Self.slot), using: &random))
            wheel.expire(upTo: now)
            for waiter in waiters where waiter.deadline != .never {
                if waiter.isTimedOut { #expect(waiter.deadline <= now) }
                let isLate = waiter.deadline.advanced(byNanoseconds: Self.slot) <= now
                if isLate { #expect(waiter.isTimedOut) }
            }
            waiters = waiters.map { $0.isTimedOut ? self.waiter(.never) : $0 }
        }
    }
}

extension TimerWheel {
    /// What a loop does once it has woken.
    fileprivate mutating func expire(upTo now: MonotonicInstant) {
        var expired: [Waiter] = []
        advance(to: now, &expired)
        for waiter in expired { waiter.expire() }
    }
}
