/// The files of one certificate with which a server, or a client that has one, proves who it is.
public struct CertificateFiles: Sendable, Hashable {
    /// PEM: the certificate itself, and behind it, in order, those that lead to the root.
    public var certificate: String
    /// PEM: its private key, without a password.
    public var key: String
    /// DER: what the authority's OCSP responder said about the certificate; nil staples nothing.
    public var ocsp: String?

    public init(certificate: String, key: String, ocsp: String? = nil) {
        self.certificate = certificate
        self.key = key
        self.ocsp = ocsp
    }

    /// All of them.
    public var paths: [String] { [certificate, key] + (ocsp.map { [$0] } ?? []) }
}
