internal import Reactor
internal import Replay

/// One loop's way to the claim store. Made and used on that loop.
final class LoopClaims {
    /// Claims have to carry the token.
    let needsToken: Bool
    private let loop: EventLoop
    private let session: any ClaimSession
    private let health: StoreHealth

    init(_ store: any ClaimStore, health: StoreHealth, loop: EventLoop) {
        self.loop = loop
        self.health = health
        needsToken = store.needsToken
        session = store.makeSession(on: loop)
    }

    /// Claims a token; see `ClaimSession.claim`.
    func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome
    {
        let outcome = await session.claim(claim, waiter: waiter, until: deadline)
        health.note(outcome, at: loop.now)
        return outcome
    }

    /// Takes a claim back; see `ClaimSession.release`.
    func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool {
        await session.release(claim, waiter: waiter, until: deadline)
    }

    /// Connects; see `ClaimSession.warmUp`.
    func warmUp(until deadline: MonotonicInstant) async {
        let waiter = Waiter(loop: loop)
        await session.warmUp(waiter: waiter, until: deadline)
        waiter.invalidate()
    }

    /// The loop ends.
    func close() {
        session.close()
    }
}
