internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// Who a client connection is from. All its requests share the object.
final class ClientPeer {
    /// The IP address: who the connection came from, or who a PROXY header says that it is passed on
    /// for. Nil on a local socket.
    private(set) var address: IPAddress?
    /// The address as text, without port.
    private(set) var host: String
    /// It is one of the listener's `trusted_proxies`.
    private(set) var isTrusted: Bool
    /// The address of the load balancer whose PROXY header named the peer, as text; nil without one.
    private(set) var balancerHost: String?
    /// The client's connection to the load balancer is encrypted, says that one.
    private(set) var isEncryptedInFront = false

    /// The other end of an accepted connection.
    init(_ peer: SocketAddress, listener: ServedListener) {
        host = peer.host
        address = IPAddress(bytes: peer.ipBytes.span)
        isTrusted = address.map(listener.isTrusted) ?? listener.listener.trustsLocalPeers
    }

    /// Takes over what a load balancer says about the peer.
    ///
    /// - Returns: the address that it names; nil when it names none.
    func adopt(_ header: ProxyHeader, listener: ServedListener) -> IPAddress? {
        // A balancer's own connections, such as health checks, have the peer that they have.
        if header.origin == .balancer { return nil }
        balancerHost = host
        isEncryptedInFront = header.isEncrypted
        guard case .client(let address) = header.origin else {
            // Somebody's, and not the balancer's: nothing that it says is to be believed.
            isTrusted = false
            return nil
        }
        self.address = address
        host = address.description
        isTrusted = listener.isTrusted(address)
        return address
    }
}
