public import Reactor

/// Claims in a Redis or Valkey server, or in a cluster of them, for proxies on several machines
/// (docs/decisions/0052-redis-store.md).
public final class RedisStore: ClaimStore {
    private let context: RedisContext

    /// A store that is connected to nothing yet.
    ///
    /// - Parameter events: Gets what operators should know, on the thread of any loop. Never a key,
    ///   a token or a password.
    public init(settings: RedisSettings, events: @escaping @Sendable (StoreEvent) -> Void) {
        context = RedisContext(settings, events: events)
    }

    public var name: StaticString { "redis" }
    public var needsToken: Bool { false }
    public var isRemote: Bool { true }

    /// Known once a session has connected; 0 before.
    public var reliableSince: Int64 { context.memory.since }

    public func makeSession(on loop: EventLoop) -> any ClaimSession {
        RedisSession(context, loop: loop)
    }

    /// The servers forget by themselves.
    public func purge(at now: ClaimInstant) -> Bool { false }

    public func adopt(patience: Duration) {
        context.patience.adopt(patience)
    }

    public var statistics: StoreStatistics {
        StoreStatistics(breaker: context.breakerState(at: .now))
    }
}
