public import Reactor
public import TLS

/// A GET that the client is to make.
public struct HTTPGetRequest: Sendable {
    /// What to get.
    public var url: HTTPURL
    /// Fields beyond the client's own. Their values are never logged.
    public var fields: [(name: String, value: String)] = []
    /// Whose certificates are believed, for an `https` URL.
    public var trust: TLSTrust = .system
    /// An HTTP proxy that opens a tunnel (CONNECT) to the host of an `https` URL; plain `http`
    /// goes directly.
    public var egressProxy: HTTPEndpoint?
    /// When the whole request must have ended.
    public var deadline: MonotonicInstant
    /// A longer content is an error.
    public var maximumBodyBytes = 1 << 20

    public init(_ url: HTTPURL, deadline: MonotonicInstant) {
        self.url = url
        self.deadline = deadline
    }
}
