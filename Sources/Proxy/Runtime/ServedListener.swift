internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// A listener's settings in the form that requests use: one reference to hold, times in
/// nanoseconds.
final class ServedListener: Sendable {
    let listener: Listener
    let name: String
    let headLimits: HeadLimits
    /// Bytes of a request's body.
    let bodyLimit: UInt64
    let headerNanoseconds: Int64
    let idleNanoseconds: Int64

    init(_ listener: Listener) {
        self.listener = listener
        name = listener.name
        headLimits = HeadLimits(
            bytes: listener.limits.headerBytes, fields: listener.limits.headers)
        bodyLimit = listener.limits.body
        headerNanoseconds = listener.limits.headerTimeout.nanoseconds
        idleNanoseconds = listener.limits.idleTimeout.nanoseconds
    }

    /// Whether an address belongs to a proxy whose forwarding fields are believed.
    func isTrusted(_ address: IPAddress) -> Bool {
        listener.trustedProxies.contains { $0.contains(address) }
    }
}
