internal import Reactor

/// A loop's way to a file store. Claims of one turn of the loop are made in one transaction: a busy
/// loop has dozens of them, and a commit costs more than a claim.
final class FileSession: ClaimSession {
    /// Other loops and processes wait for a transaction.
    private static let turnLimit = 64

    /// Claims that are made together.
    private final class Turn {
        var claims: [TurnClaim] = []
        var isMade = false
    }

    private let store: FileStore
    private var turn = Turn()

    init(store: FileStore) {
        self.store = store
    }

    func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome
    {
        let turn = self.turn
        let place = turn.claims.count
        turn.claims.append(store.turnClaim(claim))
        // The requests that are ready now add theirs meanwhile; the first one that goes on makes
        // them all.
        if place + 1 < Self.turnLimit { await Task.yield() }
        if !turn.isMade { make(turn) }
        return turn.claims[place].outcome
    }

    private func make(_ turn: Turn) {
        turn.isMade = true
        self.turn = Turn()
        store.claim(&turn.claims)
    }

    func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool {
        store.release(claim)
    }

    func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome?
    {
        store.inspect(claim)
    }

    func close() {}
}
