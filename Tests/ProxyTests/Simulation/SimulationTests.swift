#if DEBUG
    import Glibc
    import TestKit
    import Testing

    /// A worker with all that belongs to it, for hours of a simulated world: nothing in it is awaited,
    /// and everything in it follows from a number (docs/decisions/0070-simulation.md).
    ///
    /// `make simulate SEED=… MINUTES=…` runs a seed of one's choice.
    @Suite("Simulation", .serialized)
    struct SimulationTests {
        @Test("nothing happens that must not", arguments: [1, 2, 3] as [UInt64])
        func holds(seed: UInt64) throws {
            let outcome = try Simulation(seed: seed, duration: .seconds(300)).run()
            #expect(outcome.violation == nil, "\(outcome.report)")
            // A world in which nothing happens proves nothing.
            #expect(outcome.requests > 300 && outcome.served > 100)
            for status in [200, 401, 502] {
                #expect(outcome.statuses[status, default: 0] > 0, "no \(status)")
            }
        }

        @Test("one seed is one story, to the last byte")
        func repeats() throws {
            let first = try tell(seed: 7)
            let second = try tell(seed: 7)
            #expect(first.violation == nil)
            #expect(first.hash == second.hash && first.entries == second.entries)
            #expect(first.tail == second.tail)
            #expect(first.hash != (try tell(seed: 8)).hash)
        }

        private func tell(seed: UInt64) throws -> Simulation.Outcome {
            try Simulation(seed: seed, duration: .seconds(200), speaksHTTP2: false).run()
        }

        @Test(
            "a seed of one's choice", .enabled(if: getenv("SIMULATION_SEED") != nil))
        func chosen() throws {
            let seed = Self.number("SIMULATION_SEED") ?? UInt64.random(in: 0...UInt64.max)
            let minutes = Self.number("SIMULATION_MINUTES") ?? 240
            print("simulation: seed \(seed), \(minutes) minutes")
            let outcome = try Simulation(seed: seed, duration: .seconds(Int64(minutes) * 60)).run()
            print(
                "simulation: \(outcome.requests) requests, \(outcome.served) served, trace "
                    + "\(String(outcome.hash, radix: 16)) of \(outcome.entries) entries")
            #expect(outcome.violation == nil, "\(outcome.report)")
        }

        /// A number in the environment.
        private static func number(_ name: String) -> UInt64? {
            getenv(name).flatMap { UInt64(String(cString: $0)) }
        }
    }
#endif
