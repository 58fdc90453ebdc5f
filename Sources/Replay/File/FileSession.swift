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
        /// How many have read their outcome.
        var readCount = 0
    }

    private let store: FileStore
    private var turn = Turn()
    /// A turn that everybody has read, for the next one: its memory is there already.
    private var spare: Turn?

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
        let outcome = turn.claims[place].outcome
        turn.readCount += 1
        if turn.readCount == turn.claims.count { keep(turn) }
        return outcome
    }

    private func make(_ turn: Turn) {
        turn.isMade = true
        self.turn = spare ?? Turn()
        spare = nil
        store.claim(&turn.claims)
    }

    private func keep(_ turn: Turn) {
        turn.claims.removeAll(keepingCapacity: true)
        turn.isMade = false
        turn.readCount = 0
        spare = turn
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
