internal import Reactor
internal import Synchronization

/// One question to the system's resolver or a name server, on a thread of its own, that nobody has
/// to wait for: neither can be stopped, and a name server that is silent costs half a minute.
///
/// Safe to be Sendable: the answer is behind a lock, and the waiter is only touched on its loop.
final class ResolverThread<Answer: Sendable>: @unchecked Sendable {
    private let loop: EventLoop
    private let waiter: Waiter
    private let given = Mutex<Answer?>(nil)

    /// Starts, and wakes `waiter` when there is an answer.
    ///
    /// - Parameter substitute: The answer when no thread could be started.
    init(
        loop: EventLoop, waiter: Waiter, substitute: Answer, ask: @escaping @Sendable () -> Answer
    ) {
        self.loop = loop
        self.waiter = waiter
        if !Thread.start(named: "resolver", { self.end(ask()) }) { end(substitute) }
    }

    /// Nil while the question is under way.
    var answer: Answer? {
        given.withLock { $0 }
    }

    private func end(_ answer: Answer) {
        given.withLock { $0 = answer }
        Task(executorPreference: loop) {
            self.loop.preconditionIsolated()
            self.waiter.wake()
        }
    }
}
