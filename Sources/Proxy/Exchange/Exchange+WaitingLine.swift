internal import Configuration
internal import Reactor

/// Requests that no server takes now (`limits` of the upstream).
extension Exchange {
    /// Waits until a server may take the request, `deadline` at the latest.
    ///
    /// - Returns: why it does not wait any longer; nil when it is its turn.
    func awaitTurn(
        _ client: ClientConnection, _ pool: UpstreamPool, until deadline: MonotonicInstant
    ) async -> ForwardingFailure? {
        let limit = pool.queueLimit
        guard let place = pool.line.join(client.waiter, limit: limit) else {
            return ForwardingFailure(reason: .upstreamQueueFull)
        }
        state.recorder.upstream(.queued, pool.upstream.name)
        while !place.isCalled {
            let reason = await client.waitUnlessGone(until: deadline)
            if reason == nil || reason == .timedOut && !place.isCalled {
                pool.line.leave(place, isGivenUp: true)
                return ForwardingFailure(
                    reason: reason == nil ? .clientAborted : .upstreamQueueTimeout)
            }
        }
        pool.line.leave(place, isGivenUp: false)
        return nil
    }
}
