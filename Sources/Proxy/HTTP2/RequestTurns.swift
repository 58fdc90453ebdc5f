internal import Reactor

/// Lets each HTTP/2 connection begin so many requests in one of the loop's rounds, and no more: one
/// packet brings a hundred heads, and such connections come by the dozen. Between two rounds everybody
/// else has a turn (pitfall W9).
final class RequestTurns {
    /// Requests that one connection begins in a round. Clients that mean well seldom ask for more at
    /// once, and lose nothing but the order in which their requests begin.
    static let ofConnection = 16
    /// The same in the round in which it is accepted: whoever opens one connection after the other
    /// only to fill it gets no further than with one.
    static let ofFreshConnection = 4
    /// Requests that were put off and begin in a round, those of all connections together.
    private static let ofRound = 64

    /// Has `run` called in the next round.
    var scheduleRound: () -> Void = {}
    private var isScheduled = false
    /// In the order in which they came; who has more stands in line again.
    private var queue: [HTTP2ClientConnection] = []
    private var first = 0

    /// A connection has requests that wait; it stands in line once.
    func join(_ connection: HTTP2ClientConnection) {
        queue.append(connection)
        schedule()
    }

    /// Begins what a round allows.
    func run() {
        isScheduled = false
        var left = Self.ofRound
        let end = queue.count
        while left > 0 && first < end {
            let connection = queue[first]
            first += 1
            left -= connection.beginWaiting(min(left, Self.ofConnection))
            if connection.hasWaiting { queue.append(connection) }
        }
        if first == queue.count {
            queue.removeAll(keepingCapacity: true)
            first = 0
            return
        }
        if first > queue.count / 2 {
            queue.removeFirst(first)
            first = 0
        }
        schedule()
    }

    /// The loop ends: nothing begins any more.
    func stop() {
        scheduleRound = {}
        queue.removeAll()
        first = 0
    }

    private func schedule() {
        if isScheduled { return }
        isScheduled = true
        scheduleRound()
    }
}
