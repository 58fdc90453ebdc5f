internal import Reactor

/// Shares out how many requests of HTTP/2 connections begin in one of the loop's rounds: one packet
/// brings a hundred heads, and such connections come by the dozen. Between two rounds everybody else
/// has a turn (pitfall W9).
///
/// A burst of clients that mean well gains too: what its requests touch is still in the processor's
/// caches when their answers come, and the first answers go out before the last request begins.
final class RequestTurns {
    /// Requests that one connection begins in a round. Clients that mean well seldom ask for more at
    /// once, and lose nothing but the order in which their requests begin.
    static let ofConnection = 16
    /// The same in the round in which it is accepted: whoever opens one connection after the other
    /// only to fill it gets no further than with one.
    static let ofFreshConnection = 4
    /// Requests that begin in a round, those of all connections together.
    private static let ofRound = 32
    /// The same of a loop that has been busy for some time: what it sends in larger pieces costs it
    /// less, and a burst does not last that long.
    private static let ofBusyRound = 256
    private static let burstNanoseconds: Int64 = 10_000_000

    /// In the order in which they came; who has more stands in line again.
    private var queue: [HTTP2ClientConnection] = []
    private var first = 0
    private let loop: EventLoop
    private var round = MonotonicInstant.never
    private var left = 0
    private var isStopped = false

    /// Nobody stands in line.
    init(loop: EventLoop) {
        self.loop = loop
    }

    /// Whether another request may begin in this round.
    var isOpen: Bool {
        // The loop's clock moves once a round.
        let now = loop.now
        if round != now {
            round = now
            let isBusy = now > loop.busySince.advanced(byNanoseconds: Self.burstNanoseconds)
            left = isBusy ? Self.ofBusyRound : Self.ofRound
        }
        return left > 0
    }

    /// A request began, as `isOpen` allowed.
    func began() {
        left -= 1
    }

    /// A connection has requests that wait; it stands in line once.
    func join(_ connection: HTTP2ClientConnection) {
        if !isStopped { queue.append(connection) }
    }

    /// Somebody stands in line.
    var isAwaited: Bool { !queue.isEmpty }

    /// Gives turns to those in line, as far as a round goes.
    func run() {
        let end = queue.count
        while first < min(end, queue.count), isOpen {
            let connection = queue[first]
            first += 1
            connection.takeTurn()
            if connection.hasWaiting { queue.append(connection) }
        }
        if first == queue.count {
            queue.removeAll(keepingCapacity: true)
            first = 0
        } else if first > queue.count / 2 {
            queue.removeFirst(first)
            first = 0
        }
    }

    /// The loop ends: nothing begins any more.
    func stop() {
        isStopped = true
        queue.removeAll()
        first = 0
    }
}
