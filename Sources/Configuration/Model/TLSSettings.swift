/// `tls` of a listener.
public struct ListenerTLS: Sendable, Equatable {
    /// Picked by the name that a client asks for; the first for all others. At least one.
    public var certificates: [TLSCertificate]
    /// PEM file: who may sign the certificates that clients must have; nil asks for none.
    public var clientCA: String?
    /// Older versions are refused.
    public var minimumVersion = TLSVersion.tls12
    /// The kernel encrypts what is sent, where it can.
    public var usesKernel = false

    public init(certificates: [TLSCertificate]) {
        self.certificates = certificates
    }
}

/// The files of one certificate.
public struct TLSCertificate: Sendable, Hashable {
    /// PEM: the certificate, and behind it those that lead to the root.
    public var certificate: String
    /// PEM: its private key.
    public var key: String
    /// DER: the OCSP response to be stapled.
    public var ocsp: String?

    public init(certificate: String, key: String, ocsp: String?) {
        self.certificate = certificate
        self.key = key
        self.ocsp = ocsp
    }
}

/// Versions that can be the oldest one.
public enum TLSVersion: String, Sendable, CaseIterable {
    case tls12 = "1.2"
    case tls13 = "1.3"
}

/// `tls` of an upstream.
public struct UpstreamTLS: Sendable, Equatable {
    /// PEM file with the authorities that are believed, and no others; nil: the system's.
    public var ca: String?
    /// Whom the servers' certificate has to be for: a host name or an address.
    public var name: String
    /// What we show to servers that ask who we are.
    public var certificate: TLSCertificate?

    public init(name: String) {
        self.name = name
    }
}
