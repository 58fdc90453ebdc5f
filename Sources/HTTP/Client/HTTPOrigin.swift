public import TLS

/// A service that a pool asks, and the way to it.
public struct HTTPOrigin: Sendable, Equatable {
    /// Scheme, host and port count; the target does not.
    public var url: HTTPURL
    /// Whose certificates are believed, for an `https` URL.
    public var trust: TLSTrust
    /// An HTTP proxy that opens a tunnel (CONNECT) to the host of an `https` URL; plain `http`
    /// goes directly.
    public var egressProxy: HTTPEndpoint?

    public init(_ url: HTTPURL, trust: TLSTrust = .system, egressProxy: HTTPEndpoint? = nil) {
        self.url = url
        self.trust = trust
        self.egressProxy = egressProxy
    }
}
