internal import Configuration
internal import Reactor

/// What a request says about the health of the server that it was given to.
extension Exchange {
    /// Takes note of how a transaction ended.
    func note(_ end: TransactionEnd, _ lease: UpstreamLease, _ pool: UpstreamPool) {
        switch end {
        case .answered:
            if let failure = record.failure, failure.isOfServer {
                failed(pool, lease.server, failure)
            } else if record.status != 0 {
                answered(pool, lease.server)
            }
        case .nothingSent:
            // A pooled connection that the server had closed says nothing about it.
            if !lease.isReused { failed(pool, lease.server, .upstreamReset) }
        case .unanswered: failed(pool, lease.server, .upstreamReset)
        case .refused:
            // One that says so works.
            break
        case .failed(let failure):
            if failure.isOfServer { failed(pool, lease.server, failure) }
        }
    }

    /// Takes note of a server that could not be reached.
    func note(_ failure: ForwardingFailure, _ pool: UpstreamPool, _ index: Int) {
        failed(pool, index, failure.reason, detail: failure.detail)
    }

    /// Nothing was left for a connection to a server. No server is to blame, and no other one would
    /// help.
    func noteExhaustion(_ failure: ForwardingFailure) {
        if !state.exhaustion.failed(at: state.loop.now) { return }
        state.log.log(
            .error, "no connection to an upstream server can be opened",
            [
                ("error", failure.detail ?? ""),
                ("hint", "raise the limit of open files (LimitNOFILE, ulimit -n)"),
            ])
    }

    /// A connection to a server was opened.
    func noteConnection() {
        if !state.exhaustion.worked(at: state.loop.now) { return }
        state.log.log(.info, "connections to upstream servers can be opened again", [])
    }

    /// The server failed a request. The log says so once.
    private func failed(
        _ pool: UpstreamPool, _ index: Int, _ failure: RequestFailure, detail: String? = nil
    ) {
        let now = state.loop.now
        let server = pool.servers[index]
        server.lastFailure = (failure, now)
        if server.notice.failed(at: now) {
            state.log.log(
                .warning, "upstream server fails",
                [
                    ("upstream", pool.upstream.name), ("server", server.label),
                    ("failure", failure.rawValue),
                ] + (detail.map { [("error", $0)] } ?? []))
        }
        if server.health.failed(at: now, pool.upstream.ejection) { eject(pool, index, failure) }
    }

    private func answered(_ pool: UpstreamPool, _ index: Int) {
        let now = state.loop.now
        let server = pool.servers[index]
        if server.notice.worked(at: now) {
            state.log.log(
                .info, "upstream server works again",
                [("upstream", pool.upstream.name), ("server", server.label)])
        }
        let isError = record.status >= 500
        if server.health.answered(isError: isError, at: now, pool.upstream.ejection) {
            eject(pool, index, nil)
        }
    }

    /// Leaves the server alone, as far as this loop is concerned, unless too few would be left.
    private func eject(_ pool: UpstreamPool, _ index: Int, _ failure: RequestFailure?) {
        guard let time = pool.eject(index, now: state.loop.now) else { return }
        state.recorder.upstream(.ejected, pool.upstream.name)
        let milliseconds = time.nanoseconds / 1_000_000
        state.log.log(
            .warning, "upstream server ejected",
            [
                ("upstream", pool.upstream.name), ("server", pool.servers[index].label),
                ("reason", failure?.rawValue ?? "error_share"), ("for", "\(milliseconds)ms"),
            ])
    }
}

extension RequestFailure {
    /// The server is to blame.
    fileprivate var isOfServer: Bool {
        switch self {
        case .upstreamConnect, .upstreamConnectTimeout, .upstreamHeaderTimeout,
            .upstreamIdleTimeout, .upstreamReset, .upstreamProtocol, .upstreamTLS:
            true
        case .malformed, .clientAborted, .drained, .clientTimeout, .bodyTooLarge, .bodyRate,
            .answerRate, .headerTimeout, .memoryLimit, .openFiles, .misdirected, .rateLimited,
            .noRoute,
            .webSocketNotSupported, .webSocketIdle, .webSocketDrained,
            .upstreamUnresolved, .upstreamUnhealthy, .upstreamQueueFull, .upstreamQueueTimeout:
            false
        }
    }
}

extension RequestFailure {
    /// How a connection to a server failed at once: for want of what this machine has no more of, or
    /// for the server's own reasons.
    init(ofConnecting error: Errno) {
        guard error.isExhaustion else {
            self = .upstreamConnect
            return
        }
        self = error.exhaustedLimit == .openFiles ? .openFiles : .memoryLimit
    }

    /// Descriptors or memory of this machine ran out.
    var isExhaustion: Bool { self == .openFiles || self == .memoryLimit }
}

extension Errno {
    /// What has run out, of an `isExhaustion`.
    var exhaustedLimit: Limit {
        self == .tooManyOpenFiles || self == .tooManyOpenFilesInSystem ? .openFiles : .memoryLimit
    }
}
