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

    /// How far the request came.
    public let phase: Phase
    /// The host and port that this phase talked to: of the URL, or of the egress proxy.
    public let host: String
    /// What went wrong and what to do. Holds no field value but that of Location.
    public let reason: String
    /// The status that the host, or the egress proxy, answered instead of 200.
    public let status: UInt16?

    init(_ phase: Phase, host: String, _ reason: String, status: UInt16? = nil) {
        self.phase = phase
        self.host = host
        self.reason = reason
        self.status = status
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
