internal import Reactor

/// Finds out where a server is.
enum RedisLocator {
    /// It does not move.
    case fixed(RedisAddress)
    /// Sentinels know who is the master now.
    case sentinels(RedisSentinels)

    /// The address to connect to.
    ///
    /// - Parameter waiter: Where the calling task sleeps.
    func locate(waiter: Waiter, until deadline: MonotonicInstant) async throws(RedisFailure)
        -> RedisAddress
    {
        switch self {
        case .fixed(let address): address
        case .sentinels(let sentinels):
            try await sentinels.locate(waiter: waiter, until: deadline)
        }
    }
}
