internal import Reactor
internal import Synchronization

/// What all loops of a store share.
final class RedisContext: Sendable {
    let settings: RedisSettings
    let keys: RedisKeys
    let connector: RedisConnector
    let memory = RedisMemory()
    let ends = RedisClaimEnds()
    let patience: Patience
    let notices: RedisNotices
    private let breakers = Mutex<[String: CircuitBreaker]>([:])

    init(_ settings: RedisSettings, events: @escaping @Sendable (StoreEvent) -> Void) {
        self.settings = settings
        patience = Patience(settings.patience)
        keys = RedisKeys(prefix: settings.keyPrefix)
        connector = RedisConnector(settings)
        notices = RedisNotices(events)
    }

    /// The breaker of a server, by its name.
    func breaker(of server: String) -> CircuitBreaker {
        breakers.withLock { breakers in
            if let breaker = breakers[server] { return breaker }
            let breaker = CircuitBreaker()
            breakers[server] = breaker
            return breaker
        }
    }

    /// A server has left the cluster.
    func forgetBreaker(of server: String) {
        breakers.withLock { $0[server] = nil }
    }

    /// The worst of all breakers.
    func breakerState(at now: MonotonicInstant) -> BreakerState {
        let states = breakers.withLock { $0.values.map { $0.state(at: now) } }
        if states.contains(.open) { return .open }
        return states.contains(.halfOpen) ? .halfOpen : .closed
    }
}
