internal import Reactor

/// Why a wait of the client ended without the thing waited for.
enum Impatience: Error {
    case timedOut
    case cancelled
}

/// How long one request of the client may still wait, and whether anybody still wants it.
final class RequestPatience {
    /// Where the request's task sleeps.
    let waiter: Waiter
    /// The end of the whole request.
    let deadline: MonotonicInstant
    private var isCancelled = false

    init(loop: EventLoop, deadline: MonotonicInstant) {
        waiter = Waiter(loop: loop)
        self.deadline = deadline
    }

    /// Ends the wait under way and every later one.
    func cancel() {
        isCancelled = true
        waiter.wake()
    }

    /// Takes the waiter out of the loop's timers. Call it when the request ends.
    func end() {
        waiter.invalidate()
    }

    /// Sleeps until something happens, at most until `limit` and until the deadline.
    func wait(until limit: MonotonicInstant = .never) async throws(Impatience) {
        if isCancelled { throw .cancelled }
        let reason = await waiter.wait(until: min(limit, deadline))
        if isCancelled { throw .cancelled }
        if reason == .timedOut { throw .timedOut }
    }
}
