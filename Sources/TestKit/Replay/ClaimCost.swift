internal import Glibc
internal import Reactor
public import Replay

/// What a claim costs on a loop's thread.
public enum ClaimCost {
    /// Claims and releases new tokens in a store that holds `entries` claims, and times the claims.
    /// Says something in a release build only.
    ///
    /// - Parameters:
    ///   - now: When all tokens are issued; they are accepted for an hour.
    /// - Returns: CPU time of a claim in nanoseconds, the loop's calls included.
    public static func nanoseconds(
        in store: any ClaimStore, entries: Int, now: ClaimInstant
    ) async throws -> Double {
        let host = try TestLoop()
        let loop = host.loop
        // With the loop as its preference, as all tasks of the proxy: without it each call would
        // be queued.
        let task = Task(executorPreference: loop) {
            let session = store.makeSession(on: loop)
            let waiter = Waiter(loop: loop)
            var random = SeededGenerator(seed: 1)
            func newClaim() -> Claim {
                Claim(
                    key: ClaimKey(high: random.next(), low: random.next()),
                    issuedAt: now.wallSeconds, retainedUntil: now.wallSeconds + 3600, at: now)
            }
            for _ in 0..<entries {
                _ = await session.claim(newClaim(), waiter: waiter, until: .never)
            }
            var spent: Int64 = 0
            for _ in 0..<200 {
                let claims = (0..<1000).map { _ in newClaim() }
                let start = threadNanoseconds()
                for claim in claims {
                    _ = await session.claim(claim, waiter: waiter, until: .never)
                }
                spent += threadNanoseconds() - start
                for claim in claims {
                    _ = await session.release(claim, waiter: waiter, until: .never)
                }
            }
            session.close()
            return Double(spent) / 200_000
        }
        // The loop stops when its host is gone.
        defer { withExtendedLifetime(host) {} }
        return await task.value
    }

    private static func threadNanoseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
