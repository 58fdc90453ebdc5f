internal import Reactor

/// Lets one TLS handshake of a loop take a step in each of the loop's rounds: a step may cost a
/// signature, which is longer than hundreds of requests, and between two of them everybody else has
/// a turn.
final class HandshakeTurns {
    private let loop: EventLoop
    private var lastTurn = MonotonicInstant(nanoseconds: 0)
    /// In the order in which they came; the first one looks again in each round.
    private var queue: [Waiter] = []
    private var first = 0

    /// The turns of one loop.
    init(loop: EventLoop) {
        self.loop = loop
    }

    /// Waits for a turn.
    ///
    /// - Returns: false when `deadline` came first.
    func take(_ waiter: Waiter, until deadline: MonotonicInstant) async -> Bool {
        // The loop's clock moves once a round.
        if isQueueEmpty && lastTurn != loop.now {
            lastTurn = loop.now
            return true
        }
        queue.append(waiter)
        while loop.now < deadline {
            if queue[first] !== waiter {
                _ = await waiter.wait(until: deadline)
            } else if lastTurn == loop.now {
                await Task.yield()
            } else {
                lastTurn = loop.now
                leave(waiter)
                return true
            }
        }
        leave(waiter)
        return false
    }

    private var isQueueEmpty: Bool { first == queue.count }

    private func leave(_ waiter: Waiter) {
        if queue[first] === waiter {
            first += 1
        } else if let place = queue[first...].firstIndex(where: { $0 === waiter }) {
            queue.remove(at: place)
        }
        if isQueueEmpty {
            queue.removeAll(keepingCapacity: true)
            first = 0
            return
        }
        if first >= 256 {
            queue.removeFirst(first)
            first = 0
        }
        queue[first].wake()
    }
}
