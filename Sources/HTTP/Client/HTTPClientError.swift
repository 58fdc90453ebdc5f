/// Why a request of the client failed: where in its course, at which host, and what to do.
public struct HTTPClientError: Error, Sendable, Equatable, CustomStringConvertible {
    /// How far the request had come. The raw value is a label.
    public enum Phase: String, Sendable, CaseIterable {
        /// Looking the host up.
        case resolve
        /// Connecting to the host, or to the egress proxy.
        case connect
        /// Asking the egress proxy for a tunnel.
        case proxy
        /// The TLS handshake, with its check of the certificate.
        case tls
        case send
        /// Waiting for the head of the answer.
        case receive
        /// An answer came, but not a 200.
        case status
        /// The content of the answer.
        case body
    }

    /// What kind of trouble it was, apart from where.
    public enum Cause: Sendable {
        /// The deadline passed.
        case timedOut
        /// Nobody wanted it any more.
        case cancelled
        /// The connection ended or broke too early.
        case disconnected
        /// Too many requests wait for a connection already.
        case crowded
        /// This machine has no descriptor or memory left for a connection.
        case exhausted
        /// What came makes no sense, or is a refusal.
        case answer
        /// Anything else: no such host, nobody listens, a bad certificate.
        case other
    }

    /// How far the request came.
    public let phase: Phase
    /// What kind of trouble it was.
    public let cause: Cause
    /// The host and port that this phase talked to: of the URL, or of the egress proxy.
    public let host: String
    /// What went wrong and what to do. Holds no field value but that of Location.
    public let reason: String
    /// The status that the host, or the egress proxy, answered instead of 200.
    public let status: UInt16?

    init(
        _ phase: Phase, host: String, _ reason: String, status: UInt16? = nil, cause: Cause? = nil
    ) {
        self.phase = phase
        self.cause = cause ?? phase.usualCause
        self.host = host
        self.reason = reason
        self.status = status
    }

    init(_ phase: Phase, host: String, _ failure: ConnectionFailure) {
        self.init(phase, host: host, failure.reason, cause: failure.cause)
    }

    public var description: String {
        let attempt =
            switch phase {
            case .resolve: "looking up"
            case .connect: "connecting to"
            case .proxy: "asking for a tunnel at egress proxy"
            case .tls: "starting TLS with"
            case .send: "sending the request to"
            case .receive: "waiting for the answer of"
            case .status: "answer of"
            case .body: "reading the answer of"
            }
        return "\(attempt) \(host): \(reason)"
    }
}

extension HTTPClientError.Phase {
    /// What stops a request there when nothing else is said.
    fileprivate var usualCause: HTTPClientError.Cause {
        switch self {
        case .resolve, .connect, .tls, .send: .other
        case .proxy, .receive, .status, .body: .answer
        }
    }
}
