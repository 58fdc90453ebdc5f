internal import COpenSSL

/// Who may sign the certificates of clients (mutual TLS).
///
/// Safe to be Sendable: it is never changed after `init`, and OpenSSL locks the store.
final class Authorities: @unchecked Sendable {
    /// Tells these authorities from others: SHA-256 of the file.
    let digest: [UInt8]
    /// Owned; freed in `deinit`.
    private let store: OpaquePointer
    private let certificates: [Certificate]

    /// Reads a PEM file.
    init(_ file: IdentityFile) throws(CertificateError) {
        let certificates = try Certificate.read(file)
        if certificates.isEmpty {
            throw CertificateError(
                .format, file.path, "there is no certificate in PEM format in it",
                remedy: "it must hold the certificates of the authorities")
        }
        guard let store = X509_STORE_new() else {
            throw CertificateError(.format, file.path, "cannot be loaded", remedy: "free memory")
        }
        self.store = store
        self.certificates = certificates
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        EVP_Digest(file.bytes, file.bytes.count, &digest, nil, EVP_sha256(), nil)
        self.digest = digest
        for certificate in certificates { X509_STORE_add_cert(store, certificate.pointer) }
        ErrorQueue.clear()
    }

    deinit {
        X509_STORE_free(store)
    }

    /// Has clients asked for a certificate, and refuses those without a good one.
    func install(in context: TLSContext) {
        SSL_CTX_set1_cert_store(context.pointer, store)
        for certificate in certificates {
            SSL_CTX_add_client_CA(context.pointer, certificate.pointer)
        }
        SSL_CTX_set_verify(
            context.pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
            PeerVerification.callback)
    }
}
