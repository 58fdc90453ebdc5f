package import Reactor
internal import Synchronization

/// One look-up by the system's resolver, on a thread of its own, that nobody has to wait for:
/// getaddrinfo(3) cannot be stopped, and a name server that is silent costs it half a minute.
///
/// Safe to be Sendable: the outcome is behind a lock, and the waiter is only touched on its loop.
package final class NameLookup: @unchecked Sendable {
    /// The name has no address.
    package struct Failure: Error {
        /// What the resolver says.
        package let reason: String
    }

    /// At least one address, or why there is none.
    package typealias Outcome = Result<[SocketAddress], Failure>

    private let loop: EventLoop
    private let waiter: Waiter
    private let outcome = Mutex<Outcome?>(nil)

    /// Starts a look-up, which wakes `waiter` when it has ended.
    package init(_ host: String, port: UInt16, loop: EventLoop, waiter: Waiter) {
        self.loop = loop
        self.waiter = waiter
        let isStarted = Thread.start(named: "resolver") {
            do throws(ResolutionError) {
                self.end(.success(try NameResolver.resolveBlocking(host, port: port)))
            } catch {
                self.end(.failure(Failure(reason: error.reason)))
            }
        }
        if !isStarted {
            end(.failure(Failure(reason: "no thread could be started")))
        }
    }

    /// How it ended; nil while it is under way.
    package var result: Outcome? {
        outcome.withLock { $0 }
    }

    private func end(_ result: Outcome) {
        outcome.withLock { $0 = result }
        Task(executorPreference: loop) {
            self.loop.preconditionIsolated()
            self.waiter.wake()
        }
    }
}

/// The question how long a look-up's answer holds, on a thread of its own, that nobody has to wait
/// for either.
///
/// Safe to be Sendable: as `NameLookup`.
package final class NameLifetimeQuery: @unchecked Sendable {
    /// What came of it.
    package enum Outcome: Sendable {
        /// The records live this long.
        case known(Duration)
        /// No name server says.
        case unknown
    }

    private let loop: EventLoop
    private let waiter: Waiter
    private let answer = Mutex<Outcome?>(nil)

    /// Asks, and wakes `waiter` when there is an answer.
    package init(_ host: String, loop: EventLoop, waiter: Waiter) {
        self.loop = loop
        self.waiter = waiter
        let isStarted = Thread.start(named: "resolver") {
            self.end(NameLifetime.askBlocking(host).map(Outcome.known) ?? .unknown)
        }
        if !isStarted { end(.unknown) }
    }

    /// How it ended; nil while it is under way.
    package var outcome: Outcome? {
        answer.withLock { $0 }
    }

    private func end(_ outcome: Outcome) {
        answer.withLock { $0 = outcome }
        Task(executorPreference: loop) {
            self.loop.preconditionIsolated()
            self.waiter.wake()
        }
    }
}
