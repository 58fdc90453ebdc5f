internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// How often, and where, a request was tried.
struct ForwardingAttempts {
    /// Bits of the servers that are of no use for it.
    var tried: UInt64 = 0
    /// Times that it was moved to another server, or sent again.
    var retries = 0
    /// How the last attempt failed.
    var failure = RequestFailure.upstreamConnect

    /// Says whether the server is not to be asked again.
    mutating func mark(_ server: Int, isUseless: Bool) {
        if server >= 64 { return }
        let bit: UInt64 = 1 << UInt64(server)
        tried = isUseless ? tried | bit : tried & ~bit
    }
}

/// When a request may be tried once more (pitfall O8; docs/decisions/0062-retries.md).
extension Exchange {
    /// Whether a request of which nothing was sent may go to another server.
    func mayMove(_ pool: UpstreamPool, _ attempts: inout ForwardingAttempts) -> Bool {
        let retries = pool.upstream.retries
        if attempts.retries >= retries.attempts
            || !pool.budget.take(at: state.loop.now, share: retries.budget)
        {
            state.recorder.upstream(.retryRefused, pool.upstream.name)
            return false
        }
        attempts.retries += 1
        state.recorder.upstream(.retried, pool.upstream.name)
        return true
    }

    /// Whether a request that was sent, and of whose answer no byte came, may be sent again: where
    /// the server said that it did nothing (RFC 9113, section 8.7), or where the method means the
    /// same twice and the configuration trusts that. A body is gone once it is sent.
    func maySendAgain(
        _ failure: ForwardingFailure, _ pool: UpstreamPool, _ attempts: inout ForwardingAttempts
    ) -> Bool {
        let isTrusted = pool.upstream.retries.idempotent && head.method.isIdempotent
        if !failure.isRefused && !(failure.isUnanswered && isTrusted) { return false }
        let isAnyLeft = attempts.tried.nonzeroBitCount < pool.servers.count
        if !isAnyLeft || head.framing != .none || head.wantsWebSocket { return false }
        return mayMove(pool, &attempts)
    }
}

/// Which server a client keeps.
extension Exchange {
    /// The client's key for consistent hashing; nil where the upstream goes by something else, or
    /// the client has no such key.
    func hashKey(_ pool: UpstreamPool) -> UInt64? {
        if pool.upstream.balance != .hash { return nil }
        fillShareKey(pool.upstream.hashBy)
        return shareKey.isEmpty ? nil : RendezvousHash.hash(shareKey)
    }
}

extension Method {
    /// RFC 9110, section 9.2.2.
    fileprivate var isIdempotent: Bool {
        switch self {
        case .get, .head, .put, .delete, .options: true
        case .post, .patch, .connect, .trace, .other: false
        }
    }
}
