internal import HTTP
internal import Reactor

/// An open WebSocket: bytes in both directions until both sides have ended theirs.
///
/// Frames are not looked at. The handshake was the request, and it was judged; what follows is
/// between the app and its backend (docs/decisions/0060-websocket.md).
extension Exchange {
    /// Relays until the WebSocket is over. Neither connection carries anything afterwards.
    func tunnel(_ client: ClientConnection, _ transaction: Transaction) async -> TransactionEnd {
        let server = transaction.server
        let begun = MonotonicInstant.now
        defer { record.tunnelMicroseconds = MonotonicInstant.now.microseconds(since: begun) }
        let headCount = output.count
        let upstreamInput = self.upstreamInput
        output.append(upstreamInput.bytes)
        input.unpin()
        shrinkForTunnel()
        var up = TunnelLeg(from: client.transport, to: server, waiting: input)
        var down = TunnelLeg(
            from: server, to: client.transport, waiting: output, head: headCount)
        var lastProgress = state.loop.now
        var activity: UInt64 = 0
        while true {
            let upward = up.advance(state.tunnelScratch)
            let downward = down.advance(state.tunnelScratch)
            record.bytesIn = up.bytes
            record.bytesOut = down.bytes
            if let end = tunnelEnd(client, server, (up, upward), (down, downward)) { return end }
            if activity != up.activity &+ down.activity {
                activity = up.activity &+ down.activity
                lastProgress = state.loop.now
            }
            if upward == .pausing || downward == .pausing {
                await Task.yield()
                continue
            }
            let deadline = lastProgress.advanced(byNanoseconds: transaction.pool.idleNanoseconds)
            if await client.waiter.wait(until: deadline) == .timedOut {
                return endTunnel(.close, .webSocketIdle)
            }
        }
    }

    private func tunnelEnd(
        _ client: ClientConnection, _ server: any Transport,
        _ up: (leg: TunnelLeg, progress: TunnelLeg.Progress),
        _ down: (leg: TunnelLeg, progress: TunnelLeg.Progress)
    ) -> TransactionEnd? {
        if client.isAborted { return endTunnel(.close, .webSocketDrained) }
        if up.progress == .sourceFailed {
            return endTunnel(.close, client.transport.isMalformed ? .malformed : .clientAborted)
        }
        if down.progress == .sourceFailed {
            return endTunnel(.reset, server.isMalformed ? .upstreamProtocol : .upstreamReset)
        }
        // A side that reads no more may have said its last words before, so they are still passed on.
        if up.progress == .sinkFailed { record.failure = record.failure ?? .upstreamReset }
        if down.progress == .sinkFailed { record.failure = record.failure ?? .clientAborted }
        if up.leg.isOver && down.leg.isOver { return endTunnel(.close, record.failure) }
        // Who ended its own side before, and is gone altogether now, waits for nothing more.
        let isClientGone = up.leg.isOver && client.transport.isBroken
        let isServerGone = down.leg.isOver && server.isBroken
        return isClientGone || isServerGone ? endTunnel(.close, record.failure) : nil
    }

    private func endTunnel(_ fate: Fate, _ failure: RequestFailure?) -> TransactionEnd {
        record.failure = failure
        return .answered(fate, isReusable: false)
    }
}
