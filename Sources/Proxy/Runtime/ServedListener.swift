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

    /// Bytes per second of a body, and of an answer; 0 for any rate.
    let bodyRate: UInt64
    let answerRate: UInt64
    /// How long a client may be waited for before its rate counts.
    let graceNanoseconds: Int64
    /// Requests of one connection.
    let requestLimit: Int
    /// Pipelined requests that are served in a row.
    let turnLimit: UInt8
    /// How many connections there are, over all loops.
    let ledger: ListenerLedger

    /// `protocols` has `h2`.
    let servesHTTP2: Bool
    /// `protocols` has `http/1.1`.
    let servesHTTP1: Bool

    /// Its certificates; nil where it speaks plain text.
    let tls: TLSServer?

    /// Prepares a listener's settings.
    init(
        _ listener: Listener, tls: TLSServer? = nil, ledger: ListenerLedger = ListenerLedger()
    ) {
        self.listener = listener
        self.tls = tls
        name = listener.name
        self.ledger = ledger
        let limits = listener.limits
        headLimits = HeadLimits(
            bytes: limits.headerBytes, fields: limits.headers, target: limits.url)
        bodyRate = limits.bodyRate
        answerRate = limits.answerRate
        graceNanoseconds = limits.rateGrace.nanoseconds
        requestLimit = limits.requestsPerConnection ?? .max
        turnLimit = UInt8(clamping: limits.pipelined)
        bodyLimit = listener.limits.body
        headerNanoseconds = listener.limits.headerTimeout.nanoseconds
        servesHTTP2 = listener.protocols.contains(.http2)
        servesHTTP1 = listener.protocols.contains(.http1)
        idleNanoseconds = listener.limits.idleTimeout.nanoseconds
    }

    /// Counts one connection more.
    ///
    /// - Returns: the limit that is in the way; nil when it was counted.
    func enter(_ network: IPAddress?) -> Limit? {
        let limits = listener.limits
        return ledger.enter(
            limit: limits.connections,
            network: network.flatMap { network in
                limits.connectionsPerNetwork.map { (network, $0) }
            })
    }

    /// What a connection of this peer is counted as: a trusted proxy's are many clients', and a local
    /// socket's nobody knows.
    func place(of address: IPAddress?) -> ConnectionPlace {
        guard listener.limits.connectionsPerNetwork != nil, let address, !isTrusted(address) else {
            return ConnectionPlace(network: nil)
        }
        return ConnectionPlace(network: address.clientNetwork)
    }

    /// Counts a connection of a load balancer as that of the client that it names.
    ///
    /// - Returns: nil when the client's network has too many already.
    func place(ofNamed address: IPAddress) -> ConnectionPlace? {
        let place = place(of: address)
        guard let network = place.network, let limit = listener.limits.connectionsPerNetwork else {
            return place
        }
        return ledger.assign(network, limit: limit) ? place : nil
    }

    /// Whether an address belongs to a proxy whose forwarding fields are believed.
    func isTrusted(_ address: IPAddress) -> Bool {
        listener.trustedProxies.contains { $0.contains(address) }
    }
}
