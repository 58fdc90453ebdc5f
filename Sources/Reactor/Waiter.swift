/// Why a wait ended.
public enum WakeReason: Sendable {
    case ready, timedOut
}

/// Something that sleeps without a task: it costs nothing but itself until it is woken.
public protocol Sleeper: AnyObject {
    /// Called on the loop, once for each `Waiter.sleep`.
    func awaken(_ reason: WakeReason)
}

/// The one place where a task of an event loop sleeps.
///
/// Sockets, timers and other tasks of the same loop wake it. A wake-up that comes while nobody
/// sleeps is kept, so the pattern "try everything, then wait" never loses one. A task that watches
/// several sockets gives them the same waiter.
///
/// A waiter belongs to one event loop and is not thread-safe.
public final class Waiter {
    /// The loop of the task that sleeps here.
    let loop: EventLoop
    private var continuation: UnsafeContinuation<Void, Never>?
    private var sleeper: (any Sleeper)?
    private var isSignalled = false
    /// The last wait's deadline passed.
    private(set) var isTimedOut = false

    // The timer wheel's links. It re-files an entry lazily: `deadline` may be later than the slot
    // that holds it.
    var deadline = MonotonicInstant.never
    /// The slot of the wheel; -1 when it is in none.
    var slot: Int32 = -1
    /// The neighbour behind it in that slot.
    var next: Waiter?
    /// The neighbour before it. Safe: a filed waiter's neighbours are filed too, and the wheel
    /// holds every waiter that is.
    unowned(unsafe) var previous: Waiter?

    /// A place to sleep for one task of `loop`.
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
        file(deadline)
        await withUnsafeContinuation(isolation: #isolation) { continuation in
            // The closure can run after a re-enqueue, with other jobs of the loop in between.
            if isSignalled || isTimedOut {
                continuation.resume()
            } else {
                self.continuation = continuation
            }
        }
        return takeReason()
    }

    /// Has `sleeper` woken as `wait` would return, without a task that waits meanwhile. At once
    /// when a wake-up is pending.
    public func sleep(_ sleeper: any Sleeper, until deadline: MonotonicInstant) {
        file(deadline)
        self.sleeper = sleeper
        if isSignalled { resume() }
    }

    /// Ends the wait, or the next one.
    @inline(__always)
    public func wake() {
        isSignalled = true
        resume()
    }

    /// Takes the waiter out of the timer wheel. Call it when its task ends.
    public func invalidate() {
        sleeper = nil
        loop.timers.remove(self)
    }

    /// The deadline has passed: ends the wait.
    func expire() {
        isTimedOut = true
        resume()
    }

    @inline(__always)
    private func file(_ deadline: MonotonicInstant) {
        isTimedOut = false
        self.deadline = deadline
        if deadline != .never { loop.timers.file(self) }
    }

    @inline(__always)
    private func takeReason() -> WakeReason {
        let reason: WakeReason = isTimedOut && !isSignalled ? .timedOut : .ready
        deadline = .never
        isSignalled = false
        return reason
    }

    @inline(__always)
    private func resume() {
        if let continuation {
            self.continuation = nil
            continuation.resume()
        } else if let sleeper {
            self.sleeper = nil
            sleeper.awaken(takeReason())
        }
    }
}
