internal import Reactor
public import Replay

/// Claims on an event loop of its own, as one of the proxy's workers would. Without a session, claims
/// are answered with `unavailable(.system)`.
public actor ClaimCaller {
    private let host: TestLoop
    private var session: (any ClaimSession)?

    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        host.loop.asUnownedSerialExecutor()
    }

    public init() throws {
        host = try TestLoop()
    }

    /// Makes the session, and connects it.
    public func open(_ store: any ClaimStore) async {
        let session = store.makeSession(on: host.loop)
        self.session = session
        await session.warmUp(waiter: Waiter(loop: host.loop), until: deadline)
    }

    public func close() {
        session?.close()
        session = nil
    }

    public func claim(_ claim: Claim) async -> ClaimOutcome {
        guard let session else { return .unavailable(.system) }
        return await session.claim(claim, waiter: Waiter(loop: host.loop), until: deadline)
    }

    /// One after the other, without leaving the loop.
    public func claimAll(_ claims: [Claim]) async -> [ClaimOutcome] {
        var outcomes: [ClaimOutcome] = []
        for claim in claims { outcomes.append(await self.claim(claim)) }
        return outcomes
    }

    /// All at once: each is made before the first is answered, if the store lets it wait.
    ///
    /// - Returns: the outcomes in the order of the claims, which is the order of the calls.
    public func claimTogether(_ claims: [Claim]) async -> [ClaimOutcome] {
        await withTaskGroup(of: (Int, ClaimOutcome).self) { group in
            for (index, claim) in claims.enumerated() {
                group.addTask(executorPreference: host.loop) { (index, await self.claim(claim)) }
            }
            var outcomes = [ClaimOutcome](repeating: .unavailable(.system), count: claims.count)
            for await (index, outcome) in group { outcomes[index] = outcome }
            return outcomes
        }
    }

    public func release(_ claim: Claim) async -> Bool {
        guard let session else { return false }
        return await session.release(claim, waiter: Waiter(loop: host.loop), until: deadline)
    }

    public func inspect(_ claim: Claim) async -> ClaimOutcome? {
        guard let session else { return nil }
        return await session.inspect(claim, waiter: Waiter(loop: host.loop), until: deadline)
    }

    /// By the real clock: what a history says of the time is for the store's rules alone.
    private var deadline: MonotonicInstant { .now.advanced(by: .seconds(10)) }
}
