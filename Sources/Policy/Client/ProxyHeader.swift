/// The header of the PROXY protocol: what a load balancer that passes bytes on says, in front of
/// the first of them, about the connection that it passes on (HAProxy's specification of 2020,
/// versions 1 and 2).
///
/// Only bytes and no I/O: whoever reads the connection asks again when more of it is there.
public struct ProxyHeader: Sendable, Equatable {
    /// Whose connection it is.
    public enum Origin: Sendable, Equatable {
        /// The load balancer's own, such as a health check (`LOCAL`).
        case balancer
        /// A client's, of which the load balancer cannot say more (`UNKNOWN`, `AF_UNSPEC`,
        /// `AF_UNIX`).
        case unknown
        /// A client's with this address.
        case client(IPAddress)
    }

    /// Bytes of the longest header that is read. Addresses need 232 at most and the protocol aims
    /// at 536; the rest is room for what balancers add about TLS and about their clouds.
    public static let longest = 4096

    /// Whose connection it is.
    public var origin: Origin
    /// The client's connection to the load balancer is encrypted (`PP2_TYPE_SSL`).
    public var isEncrypted = false
    /// Bytes of the header; what the client sent begins behind them.
    public var length: Int

    /// A header without attributes.
    public init(origin: Origin, length: Int) {
        self.origin = origin
        self.length = length
    }

    /// Reads the header at the start of `bytes`. The result for the first bytes of a connection
    /// does not depend on how many more are there.
    ///
    /// - Returns: nil when more bytes are needed to tell.
    /// - Throws: why it is none, as soon as a byte shows it.
    public static func parse(_ bytes: Span<UInt8>) throws(ProxyHeaderError) -> ProxyHeader? {
        guard !bytes.isEmpty else { return nil }
        return bytes[0] == BinaryProxyHeader.signature[0]
            ? try BinaryProxyHeader.parse(bytes) : try TextProxyHeader.parse(bytes)
    }
}

/// Why bytes are no PROXY header. The raw values are words of metrics and logs.
public enum ProxyHeaderError: String, Error, Sendable, CaseIterable {
    /// The connection begins with something else.
    case signature
    /// Another version than 1 and 2, or a command that version 2 does not have.
    case version
    /// An address family or transport that the version does not have.
    case family
    /// The addresses are not what the family says, or the line is not what version 1 says.
    case address
    /// Longer than `ProxyHeader.longest`, or than the 107 bytes of version 1.
    case tooLong = "too_long"
    /// What follows the addresses of version 2 does not add up.
    case attribute
    /// The checksum in it is another one than the bytes have.
    case checksum
}
