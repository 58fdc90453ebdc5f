#if DEBUG
    import HTTP
    import Reactor
    import TestKit
    import Testing

    @Suite("Faults of the kernel: looking names up")
    struct NameLookupFaultTests {
        @Test("a look-up whose thread cannot be started fails, and wakes who waits for it")
        func noThread() async throws {
            let reason = try await TestLoop().run { resident in
                let waiter = Waiter(loop: resident.loop)
                defer { waiter.invalidate() }
                let plan = FaultPlan([FaultRule("pthread_create", .wouldBlock)])
                let lookup = StandIn.use(plan) {
                    NameLookup("name.test", port: 80, loop: resident.loop, waiter: waiter)
                }
                let deadline = resident.loop.now.advanced(by: .seconds(20))
                let wake = await waiter.wait(until: deadline)
                guard wake == .ready, case .failure(let failure) = lookup.result else { return "" }
                return failure.reason
            }
            #expect(reason == "no thread could be started")
        }
    }
#endif
