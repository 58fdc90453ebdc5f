package import Reactor

/// One look-up by the system's resolver (getaddrinfo(3)), that nobody has to wait for.
package struct NameLookup: Sendable {
    /// The name has no address.
    package struct Failure: Error {
        /// What the resolver says.
        package let reason: String
    }

    /// At least one address, or why there is none.
    package typealias Outcome = Result<[SocketAddress], Failure>

    private let thread: ResolverThread<Outcome>

    /// Starts a look-up, which wakes `waiter` when it has ended.
    package init(_ host: String, port: UInt16, loop: EventLoop, waiter: Waiter) {
        let substitute = Outcome.failure(Failure(reason: "no thread could be started"))
        thread = ResolverThread(loop: loop, waiter: waiter, substitute: substitute) {
            do throws(ResolutionError) {
                return .success(try NameResolver.resolveBlocking(host, port: port))
            } catch {
                return .failure(Failure(reason: error.reason))
            }
        }
    }

    /// How it ended; nil while it is under way.
    package var result: Outcome? { thread.answer }
}

/// The question how long a look-up's answer holds, that nobody has to wait for either.
package struct NameLifetimeQuery: Sendable {
    /// What came of it.
    package enum Outcome: Sendable {
        /// The records live this long.
        case known(Duration)
        /// No name server says.
        case unknown
    }

    private let thread: ResolverThread<Outcome>

    /// Asks, and wakes `waiter` when there is an answer.
    package init(_ host: String, loop: EventLoop, waiter: Waiter) {
        thread = ResolverThread(loop: loop, waiter: waiter, substitute: .unknown) {
            NameLifetime.askBlocking(host).map(Outcome.known) ?? .unknown
        }
    }

    /// How it ended; nil while it is under way.
    package var outcome: Outcome? { thread.answer }
}
