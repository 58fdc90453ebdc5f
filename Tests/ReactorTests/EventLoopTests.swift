import Reactor
import TestKit
import Testing

@Suite("Event loop")
struct EventLoopTests {
    @Test("a wait ends at its deadline when nothing wakes it")
    func deadline() async throws {
        let before = MonotonicInstant.now
        let reason = try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            defer { waiter.invalidate() }
            return await waiter.wait(until: loop.loop.now.advanced(by: .milliseconds(80)))
        }
        #expect(reason == .timedOut)
        #expect(MonotonicInstant.now.microseconds(since: before) >= 80_000)
    }

    @Test("a wake-up that comes before the wait is kept, once")
    func earlyWake() async throws {
        let reasons = try await TestLoop().run { loop in
            let waiter = Waiter(loop: loop.loop)
            defer { waiter.invalidate() }
            waiter.wake()
            waiter.wake()
            let first = await waiter.wait()
            let soon = loop.loop.now.advanced(by: .milliseconds(1))
            return [first, await waiter.wait(until: soon)]
        }
        #expect(reasons == [.ready, .timedOut])
    }
}
