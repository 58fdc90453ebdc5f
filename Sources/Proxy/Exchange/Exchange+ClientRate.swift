internal import HTTP
internal import Reactor

/// Clients that are too slow: in sending a body, or in taking an answer.
extension Exchange {
    /// Waits for the client, who alone holds the request up.
    ///
    /// - Returns: how the transaction ends when the client took too long; nil when something moves.
    func awaitClient(
        _ client: ClientConnection, _ transaction: inout Transaction, uploaded: UInt64
    ) async -> TransactionEnd? {
        let listener = client.listener
        let idle = transaction.lastProgress.advanced(byNanoseconds: listener.idleNanoseconds)
        let isUpload = transaction.obstacle == .clientBody
        let rate = isUpload ? listener.bodyRate : listener.answerRate
        if rate == 0 || isUpload && !hasBodyRate(transaction, uploaded: uploaded) {
            let reason = await client.waiter.wait(until: idle)
            return reason == .timedOut ? timedOut(transaction) : nil
        }
        let moved = isUpload ? uploaded : transaction.download?.contentBytes ?? 0
        let allowance = isUpload ? transaction.uploadAllowance : transaction.answerAllowance
        let left = allowance.left(bytes: moved, rate: rate, grace: listener.graceNanoseconds)
        let begun = state.loop.now
        let end = begun.advanced(byNanoseconds: left)
        let reason = await client.waiter.wait(until: min(idle, end))
        let waited = state.loop.now.nanoseconds &- begun.nanoseconds
        if isUpload {
            transaction.uploadAllowance.spend(waited)
        } else {
            transaction.answerAllowance.spend(waited)
        }
        if reason != .timedOut { return nil }
        if idle <= end { return timedOut(transaction) }
        return isUpload ? broken(.bodyRate, transaction) : cutOff(.answerRate)
    }

    /// A body that is one side of a conversation has no rate: the client may have nothing to say, or
    /// wait to be asked to.
    private func hasBodyRate(_ transaction: Transaction, uploaded: UInt64) -> Bool {
        if transaction.download != nil || isGRPCCall { return false }
        return !head.expectsContinue || transaction.interimCount > 0 || uploaded > 0
    }
}
