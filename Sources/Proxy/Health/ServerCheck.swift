internal import Configuration
internal import HTTP
internal import Reactor
internal import TLS

/// One server that is checked: where, how, and what came of it so far. Belongs to the control loop.
final class ServerCheck {
    /// Whom it is about. A reload goes on with what is known about the same server.
    let subject: HealthSnapshot.Server
    /// The upstream as configured.
    let upstream: Upstream
    /// How it is done.
    let settings: HealthCheck
    /// What connections are made with; nil where they are plain text.
    let tls: TLSContext?
    /// Where its task sleeps between two checks.
    let waiter: Waiter
    /// What is known.
    var verdict: HealthVerdict
    /// Why the last check failed; nil when it did not.
    var lastReason: String?
    /// Nobody wants it any more.
    private(set) var isOver = false

    private let loop: EventLoop
    private let probe: HTTPProbe
    private let url: HTTPURL?

    init(
        _ upstream: Upstream, _ settings: HealthCheck, _ address: SocketAddress, tls: TLSContext?,
        loop: EventLoop, version: String, unhealthy: Set<HealthSnapshot.Server>
    ) {
        let label = address.description
        let subject = HealthSnapshot.Server(upstream: upstream.name, label: label)
        self.subject = subject
        self.upstream = upstream
        self.settings = settings
        self.tls = tls
        self.loop = loop
        waiter = Waiter(loop: loop)
        verdict = HealthVerdict(settings, isHealthy: !unhealthy.contains(subject))
        probe = HTTPProbe(
            address, tls: tls.map { ($0, upstream.tls?.name ?? "") }, loop: loop, version: version)
        let name = upstream.tls.map { $0.name.contains(":") ? "[\($0.name)]" : $0.name }
        let host = settings.host ?? name ?? (address.isLocal ? "localhost" : label)
        url = try? HTTPURL("\(tls == nil ? "http" : "https")://\(host)\(settings.path)")
    }

    /// Whether it does what another configuration asks for, too.
    func serves(_ upstream: Upstream, _ tls: TLSContext?) -> Bool {
        settings == upstream.health && self.tls === tls && self.upstream.tls == upstream.tls
            && self.upstream.serverProtocol == upstream.serverProtocol
    }

    /// Asks the server once.
    ///
    /// - Returns: how it went, and why it did not go well.
    func perform() async -> (result: HealthCheckResult, reason: String?) {
        let deadline = loop.now.advanced(by: settings.timeout)
        do throws(HTTPClientError) {
            if upstream.serverProtocol.isMultiplexed {
                try await probe.greet(until: deadline)
                return (.success, nil)
            }
            guard let url else { return (.protocol, "the host and path make no URL") }
            let status = try await probe.status(of: url, until: deadline)
            if settings.status.contains(status) { return (.success, nil) }
            return (.status, "it answered \(status)")
        } catch {
            return (HealthCheckResult(error), error.reason)
        }
    }

    /// Ends the check under way, and every later one.
    func stop() {
        isOver = true
        probe.cancel()
        waiter.wake()
    }
}

extension HealthCheckResult {
    fileprivate init(_ error: HTTPClientError) {
        switch error.cause {
        case .timedOut:
            self = .timeout
            return
        case .exhausted:
            self = .exhausted
            return
        default: break
        }
        switch error.phase {
        case .tls: self = .tls
        case .resolve, .connect, .proxy, .send: self = .connect
        case .receive: self = error.cause == .answer ? .protocol : .connect
        case .status, .body: self = .protocol
        }
    }
}
