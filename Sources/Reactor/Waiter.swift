/// Why a wait ended.
public enum WakeReason: Sendable {
    case ready, timedOut
}

/// The one place where a task of an event loop sleeps.
///
/// Sockets, timers and other tasks of the same loop wake it. A wake-up that comes while nobody
/// sleeps is kept, so the pattern "try everything, then wait" never loses one. A task that watches
/// several sockets gives them the same waiter.
///
/// A waiter belongs to one event loop and is not thread-safe.
public final class Waiter {
    let loop: EventLoop
    private var continuation: UnsafeContinuation<Void, Never>?
    private var isSignalled = false
    private var isTimedOut = false

    // The timer wheel's links. It re-files an entry lazily: `deadline` may be later than the slot
    // that holds it.
    var deadline = MonotonicInstant.never
    var slot = -1
    var next: Waiter?
    unowned(unsafe) var previous: Waiter?

    public init(loop: EventLoop) {
        self.loop = loop
    }

    /// Sleeps until `wake()` or until `deadline`; returns at once when a wake-up is pending or the
    /// deadline is over.
    public func wait(until deadline: MonotonicInstant = .never) async -> WakeReason {
        // It is over for a task that is woken all the time, too: a client that sends byte by byte
        // gets no more time.
        if deadline <= loop.now { return .timedOut }
        if isSignalled {
            isSignalled = false
            return .ready
        }
        isTimedOut = false
        self.deadline = deadline
        if deadline != .never { loop.timers.file(self) }
        await withUnsafeContinuation(isolation: #isolation) { continuation in
            // The closure can run after a re-enqueue, with other jobs of the loop in between.
            if isSignalled || isTimedOut {
                continuation.resume()
            } else {
                self.continuation = continuation
            }
        }
        self.deadline = .never
        let reason: WakeReason = isTimedOut && !isSignalled ? .timedOut : .ready
        isSignalled = false
        return reason
    }

    /// Ends the wait, or the next one.
    @inline(__always)
    public func wake() {
        isSignalled = true
        resume()
    }

    /// Takes the waiter out of the timer wheel. Call it when its task ends.
    public func invalidate() {
        loop.timers.remove(self)
    }

    func expire() {
        isTimedOut = true
        resume()
    }

    @inline(__always)
    private func resume() {
        if let continuation {
            self.continuation = nil
            continuation.resume()
        }
    }
}
