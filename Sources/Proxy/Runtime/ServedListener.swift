internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor
internal import TLS

/// A listener's settings in the form that requests use: one reference to hold, times in
/// nanoseconds.
final class ServedListener: Sendable {
    /// The settings as configured.
    let listener: Listener
    /// The label in logs and metrics.
    let name: String
    /// What a request's head may measure.
    let headLimits: HeadLimits
    /// Bytes of a request's body.
    let bodyLimit: UInt64
    /// From a request's first byte to the end of its head.
    let headerNanoseconds: Int64
    /// Without a byte in either direction, and between requests.
    let idleNanoseconds: Int64

    /// `protocols` has `h2`.
    let servesHTTP2: Bool
    /// `protocols` has `http/1.1`.
    let servesHTTP1: Bool

    /// Its certificates; nil where it speaks plain text.
    let tls: TLSServer?

    /// Prepares a listener's settings.
    init(_ listener: Listener, tls: TLSServer? = nil) {
        self.listener = listener
        self.tls = tls
        name = listener.name
        headLimits = HeadLimits(
            bytes: listener.limits.headerBytes, fields: listener.limits.headers)
        bodyLimit = listener.limits.body
        headerNanoseconds = listener.limits.headerTimeout.nanoseconds
        servesHTTP2 = listener.protocols.contains(.http2)
        servesHTTP1 = listener.protocols.contains(.http1)
        idleNanoseconds = listener.limits.idleTimeout.nanoseconds
    }

    /// Whether an address belongs to a proxy whose forwarding fields are believed.
    func isTrusted(_ address: IPAddress) -> Bool {
        listener.trustedProxies.contains { $0.contains(address) }
    }
}
