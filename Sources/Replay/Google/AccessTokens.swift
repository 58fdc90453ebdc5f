internal import Reactor
internal import Synchronization

/// The access token of this process: what the keeper found out, for the sessions of all loops.
final class AccessTokens: Sendable {
    /// An access token. Never logged.
    struct Token: Sendable {
        let text: String
        /// Tells it from its predecessors.
        let generation: UInt64
        let usableUntil: MonotonicInstant
    }

    /// A task that waits for news.
    ///
    /// Safe to be Sendable: the waiter is only touched on its loop.
    private final class Ticket: @unchecked Sendable {
        let loop: EventLoop
        let waiter: Waiter

        init(_ loop: EventLoop, _ waiter: Waiter) {
            self.loop = loop
            self.waiter = waiter
        }

        func call() {
            Task(executorPreference: loop) {
                self.loop.preconditionIsolated()
                self.waiter.wake()
            }
        }
    }

    private struct State {
        var token: Token?
        var generation: UInt64 = 0
        /// The last attempt failed.
        var failure: StoreFailure?
        var refusedAt: MonotonicInstant?
        var tickets: [Ticket] = []
    }

    private enum Finding {
        case token(Token)
        case failure(StoreFailure)
        case nothing
    }

    /// A fresh token that is refused, too, shall not make the service ask for another and another.
    private static let pardon: Duration = .seconds(60)
    private let state = Mutex(State())

    /// The token, waiting for it while it is fetched; or why there is none.
    nonisolated(nonsending) func token(
        on loop: EventLoop, until deadline: MonotonicInstant
    ) async -> Result<Token, StoreRefusal> {
        var waiter: Waiter?
        defer { waiter?.invalidate() }
        while true {
            switch find(at: loop.now, nil) {
            case .token(let token): return .success(token)
            case .failure(let failure): return .failure(StoreRefusal(failure))
            case .nothing: break
            }
            let place = waiter ?? Waiter(loop: loop)
            waiter = place
            let ticket = Ticket(loop, place)
            // Whatever happened between the two looks would have called nobody.
            if case .nothing = find(at: loop.now, ticket) {
                let reason = await place.wait(until: deadline)
                state.withLock { $0.tickets.removeAll { $0 === ticket } }
                if reason == .timedOut { return .failure(StoreRefusal(.timeout)) }
            }
        }
    }

    private func find(at now: MonotonicInstant, _ ticket: Ticket?) -> Finding {
        state.withLock { state in
            if let token = state.token, now < token.usableUntil { return .token(token) }
            if let failure = state.failure { return .failure(failure) }
            if let ticket { state.tickets.append(ticket) }
            return .nothing
        }
    }

    /// A new token.
    func succeeded(_ text: String, usableUntil: MonotonicInstant) {
        tell { state in
            state.generation += 1
            state.token = Token(
                text: text, generation: state.generation, usableUntil: usableUntil)
            state.failure = nil
        }
    }

    /// None came; the one before stays in use while it lasts.
    func failed(_ failure: StoreFailure) {
        tell { $0.failure = failure }
    }

    /// The service refused a token: it is thrown away, once.
    ///
    /// - Returns: whether another one is there or to be expected; false when a fresh one was
    ///   refused.
    func refused(_ token: Token, at now: MonotonicInstant) -> Bool {
        state.withLock { state in
            if state.generation != token.generation || state.token == nil { return true }
            if let last = state.refusedAt, now < last.advanced(by: Self.pardon) { return false }
            state.refusedAt = now
            state.token = nil
            state.failure = nil
            return true
        }
    }

    /// There is a token now.
    func isReady(at now: MonotonicInstant) -> Bool {
        state.withLock { state in state.token.map { now < $0.usableUntil } ?? false }
    }

    private func tell(_ change: (inout State) -> Void) {
        let tickets = state.withLock { state in
            change(&state)
            defer { state.tickets = [] }
            return state.tickets
        }
        for ticket in tickets { ticket.call() }
    }
}

/// A store's failure as an error.
struct StoreRefusal: Error {
    let failure: StoreFailure

    init(_ failure: StoreFailure) {
        self.failure = failure
    }
}
