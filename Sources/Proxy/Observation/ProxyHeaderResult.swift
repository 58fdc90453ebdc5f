internal import Policy

/// How the wait for a PROXY header ended. The raw values are label values of
/// `portcullis_proxy_headers_total`.
public enum ProxyHeaderResult: String, Sendable, CaseIterable {
    // The connection is served: as the client's, as one whose client nobody knows, as the load
    // balancer's own.
    case client, unknown, balancer
    /// The connection came from somebody who is not in `trusted_proxies`.
    case untrusted
    /// It was not complete in time.
    case timedOut = "timed_out"
    /// The connection ended before it was complete.
    case closed
    // What came is no header: see `ProxyHeaderError`.
    case signature, version, family, address
    case tooLong = "too_long"
    case attribute, checksum

    init(_ origin: ProxyHeader.Origin) {
        self =
            switch origin {
            case .client: .client
            case .unknown: .unknown
            case .balancer: .balancer
            }
    }

    init(_ error: ProxyHeaderError) {
        self =
            switch error {
            case .signature: .signature
            case .version: .version
            case .family: .family
            case .address: .address
            case .tooLong: .tooLong
            case .attribute: .attribute
            case .checksum: .checksum
            }
    }

    /// The connection may go on.
    var isServed: Bool { self == .client || self == .unknown || self == .balancer }

    /// Whoever runs the proxy wants to know: the settings of one side are wrong, or somebody tries.
    var isNotable: Bool { !isServed && self != .closed && self != .timedOut }
}
