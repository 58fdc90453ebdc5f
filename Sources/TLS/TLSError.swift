/// Why a TLS context could not be made or a TLS connection is of no use.
public struct TLSError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A word for metrics and logs.
    public enum Kind: String, Sendable, CaseIterable {
        /// A certificate or key file is missing or damaged.
        case configuration
        /// The peer's certificate is not to be believed.
        case certificate
        /// The peer does not speak TLS, or no version and cipher that both know.
        case negotiation
        /// The connection ended without the peer's close_notify: what came may be cut off.
        case truncated
        /// The connection below failed.
        case transport
        case timedOut = "timed_out"
    }

    /// What went wrong, for code.
    public let kind: Kind
    /// What exactly: which file, which certificate, which reason.
    public let detail: String

    /// What a handshake ends with at its deadline.
    public static let handshakeTimedOut = TLSError(
        .timedOut, "the peer did not complete the handshake in time")

    init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    public var description: String { detail }
}
