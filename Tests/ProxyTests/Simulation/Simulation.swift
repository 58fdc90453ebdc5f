#if DEBUG
    import Reactor
    import TestKit

    /// One run: a worker of the proxy in a simulated world, from its start to the end of its drain.
    struct Simulation {
        /// What came of a run.
        struct Outcome: Sendable {
            let seed: UInt64
            /// What the proxy did that it must not do; nil when nothing.
            let violation: String?
            /// Of everything that happened.
            let hash: UInt64
            /// The last that happened.
            let tail: String
            /// All that happened, if it was to be kept.
            let lines: [String]
            let requests: Int
            let served: Int
            let entries: Int
            let statuses: [Int: Int]

            /// For the person who has to find out why.
            var report: String {
                """
                seed \(seed): \(violation ?? "no violation")
                again with: make simulate SEED=\(seed)
                the last that happened:
                \(tail)
                """
            }
        }

        let seed: UInt64
        /// Time of the simulation until the drain.
        let duration: Duration
        /// All that happens is kept, not only the last of it.
        var keepsTrace = false

        /// Runs it on a thread of its own, and returns when it is over.
        func run() throws -> Outcome {
            let done = try EventDescriptor()
            let box = OutcomeBox()
            let isStarted = Thread.start(named: "simulation") {
                box.outcome = runHere()
                done.signal()
            }
            if !isStarted { throw Errno.noMemory }
            done.wait()
            guard let outcome = box.outcome else { throw Errno.invalidArgument }
            return outcome
        }

        /// Safe to be Sendable: written before the signal, and read after it.
        private final class OutcomeBox: @unchecked Sendable {
            var outcome: Outcome?
        }

        private func runHere() -> Outcome {
            let world = SimulatedWorld(seed: seed, keepsTrace: keepsTrace)
            let kernel = world.kernel
            StandIn.use(kernel) {
                do {
                    try runLoop(world)
                } catch {
                    kernel.report("the run could not begin: \(error)")
                }
            }
            if kernel.violation == nil { world.ledger.close() }
            let outcome = Outcome(
                seed: seed, violation: kernel.violation, hash: kernel.trace.hash,
                tail: kernel.trace.tail, lines: keepsTrace ? kernel.trace.lines : [],
                requests: world.ledger.count, served: world.ledger.servedCount,
                entries: kernel.trace.count, statuses: world.ledger.answers)
            return outcome
        }

        private func runLoop(_ world: SimulatedWorld) throws {
            let loop = try EventLoop()
            // Tasks that sleep for ever may have it, too; what it closed later would be the machine's.
            _ = Unmanaged.passRetained(loop)
            world.kernel.onViolation = { loop.stop() }
            defer { world.kernel.onViolation = {} }
            let director = try Director(world: world, loop: loop, duration: duration)
            Task(executorPreference: loop) { await director.run() }
            loop.run()
            // Whoever still has the loop must let go of it while its descriptors are those of the kernel.
            world.kernel.cancelEvents()
            if world.kernel.violation != nil {
                // Nor was anything taken down.
                _ = Unmanaged.passRetained(director)
                _ = Unmanaged.passRetained(world)
            }
            loop.afterJobs = nil
            loop.beforeSleep = nil
        }
    }
#endif
