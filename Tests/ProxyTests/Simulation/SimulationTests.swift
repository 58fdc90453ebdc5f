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

        @Test("one seed is one story, to the last byte", arguments: [7, 11] as [UInt64])
        func repeats(seed: UInt64) throws {
            let first = try tell(seed: seed)
            let second = try tell(seed: seed)
            #expect(first.violation == nil, "\(first.report)")
            #expect(first.lines.count > 10_000)
            if let parting = Self.parting(first.lines, second.lines) {
                Issue.record("two runs of seed \(seed) part:\n\(parting)")
            }
            #expect(first.hash == second.hash && first.entries == second.entries)
            #expect(first.hash != (try tell(seed: seed + 1)).hash)
        }

        private func tell(seed: UInt64) throws -> Simulation.Outcome {
            try Simulation(seed: seed, duration: .seconds(200), keepsTrace: true).run()
        }

        /// Where two traces begin to differ, with what came before; nil when they do not.
        private static func parting(_ left: [String], _ right: [String]) -> String? {
            let shared = zip(left, right).prefix { $0 == $1 }.count
            if shared == left.count && shared == right.count { return nil }
            let before = left[max(0, shared - 20)..<shared].joined(separator: "\n")
            let leftNext = shared < left.count ? left[shared] : "(end)"
            let rightNext = shared < right.count ? right[shared] : "(end)"
            return "\(before)\none:   \(leftNext)\nother: \(rightNext)"
        }

        @Test(
            "a seed of one's choice", .enabled(if: getenv("SIMULATION_SEED") != nil))
        func chosen() throws {
            let seed = Self.number("SIMULATION_SEED") ?? UInt64.random(in: 0...UInt64.max)
            let minutes = Self.number("SIMULATION_MINUTES") ?? 240
            print("simulation: seed \(seed), \(minutes) minutes")
            let trace = Self.text("SIMULATION_TRACE")
            let outcome = try Simulation(
                seed: seed, duration: .seconds(Int64(minutes) * 60), keepsTrace: trace != nil
            ).run()
            if let trace, let file = fopen(trace, "w") {
                for line in outcome.lines { fputs(line + "\n", file) }
                fclose(file)
            }
            print(
                "simulation: \(outcome.requests) requests, \(outcome.served) served, trace "
                    + "\(String(outcome.hash, radix: 16)) of \(outcome.entries) entries")
            #expect(outcome.violation == nil, "\(outcome.report)")
        }

        /// A number in the environment.
        private static func number(_ name: String) -> UInt64? {
            text(name).flatMap { UInt64($0) }
        }

        /// A text in the environment; nil also when it is empty.
        private static func text(_ name: String) -> String? {
            getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }
    }
#endif
