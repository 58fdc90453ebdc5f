internal import COpenSSL
internal import Reactor

/// What all TLS connections of one kind have in common: versions, certificates, whom to believe.
///
/// TLS 1.2 is the oldest version, and nobody may renegotiate.
///
/// Safe to be Sendable: it is never changed after `init`, and OpenSSL counts its references
/// atomically.
public final class TLSContext: @unchecked Sendable {
    /// Of TLS 1.3. AES-128 first, as in Mozilla's guideline 5.7, BoringSSL and Go: nobody breaks it, and
    /// it costs a quarter less than AES-256, whose SHA-384 has no instructions of its own either.
    private static let ciphersOf13 =
        "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

    /// Freed in `deinit`.
    let pointer: OpaquePointer
    /// Where the trusted certificates come from, for messages.
    let trustOrigin: String

    /// A context for connections that we open: the peer's certificate has to be for its host and
    /// signed by somebody in `trust`.
    ///
    /// - Parameter identity: The certificate that we show to a peer who asks for one.
    /// - Parameter protocols: ALPN names that are offered; none sends no ALPN.
    /// - Throws: `configuration`, naming the file that is missing or damaged. Reads files: make
    ///   it off the request path.
    public static func client(
        trust: TLSTrust, identity: CertificateFiles? = nil, protocols: [String] = []
    ) throws(TLSError) -> TLSContext {
        let context = try TLSContext(method: TLS_client_method(), trustOrigin: trust.origin)
        if let identity { try context.show(identity) }
        try context.offer(protocols)
        SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, PeerVerification.callback)
        // Whoever opens a connection says where its sessions are kept; OpenSSL keeps none itself.
        _ = COpenSSL_SSL_CTX_set_session_cache_mode(
            context.pointer, Int(SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL))
        SSL_CTX_sess_set_new_cb(context.pointer, PeerVerification.sessionCallback)
        switch trust {
        case .certificates(let path):
            try context.trust(file: path)
        case .system:
            if SSL_CTX_set_default_verify_dir(context.pointer) != 1 { throw outOfMemory() }
            // OpenSSL would ignore a file that it cannot read and later blame the peer's
            // certificate.
            if let path = TLSTrust.fileOfEnvironment {
                try context.trust(file: path)
            } else if SSL_CTX_set_default_verify_file(context.pointer) != 1 {
                throw outOfMemory()
            }
        }
        return context
    }

    /// A context for connections that we accept.
    ///
    /// - Parameter certificate: PEM file with our certificate and, behind it, the ones that lead
    ///   to the root.
    /// - Parameter key: PEM file with its private key.
    /// - Throws: `configuration`, naming the file that is wrong.
    public static func server(certificate: String, key: String) throws(TLSError) -> TLSContext {
        let context = try TLSContext(method: TLS_server_method(), trustOrigin: "")
        ErrorQueue.clear()
        if SSL_CTX_use_certificate_chain_file(context.pointer, certificate) != 1 {
            throw TLSError(
                .configuration, "cannot use certificate \(certificate): \(ErrorQueue.drain())")
        }
        if SSL_CTX_use_PrivateKey_file(context.pointer, key, SSL_FILETYPE_PEM) != 1 {
            throw TLSError(.configuration, "cannot use key \(key): \(ErrorQueue.drain())")
        }
        return context
    }

    /// A context for connections that we accept, without a certificate yet.
    ///
    /// - Parameter trustOrigin: Where the authorities of clients come from, for messages.
    static func server(trustOrigin: String) throws(TLSError) -> TLSContext {
        try TLSContext(method: TLS_server_method(), trustOrigin: trustOrigin)
    }

    private init(method: OpaquePointer?, trustOrigin: String) throws(TLSError) {
        ErrorQueue.clear()
        guard let pointer = SSL_CTX_new(method) else { throw Self.outOfMemory() }
        self.pointer = pointer
        self.trustOrigin = trustOrigin
        if SSL_CTX_set_ciphersuites(pointer, Self.ciphersOf13) != 1 { throw Self.outOfMemory() }
        _ = COpenSSL_SSL_CTX_set_min_proto_version(pointer, TLS1_2_VERSION)
        _ = SSL_CTX_set_options(pointer, COpenSSL_SSL_OP_NO_RENEGOTIATION)
        // A record is read in one system call into OpenSSL's own buffer, which an idle connection
        // does not keep.
        _ = COpenSSL_SSL_CTX_set_read_ahead(pointer, 1)
        _ = COpenSSL_SSL_CTX_set_mode(pointer, Int(SSL_MODE_RELEASE_BUFFERS))
    }

    deinit {
        SSL_CTX_free(pointer)
    }

    private func trust(file path: String) throws(TLSError) {
        let store = SSL_CTX_get_cert_store(pointer)
        for certificate in try Certificate.read(file: path) {
            if X509_STORE_add_cert(store, certificate.pointer) != 1 {
                throw TLSError(
                    .configuration, "cannot use a certificate in \(path): \(ErrorQueue.drain())")
            }
        }
    }

    private func show(_ identity: CertificateFiles) throws(TLSError) {
        do throws(CertificateError) {
            let chain = try CertificateChain(try IdentityFile(identity.certificate))
            let key = try PrivateKey.read(try IdentityFile(identity.key))
            try chain.checkClient(key, in: identity.key, at: wallSeconds())
            try use(chain, key)
        } catch {
            throw TLSError(.configuration, error.description)
        }
    }

    /// Shows a certificate to peers. OpenSSL takes references of its own.
    func use(_ chain: CertificateChain, _ key: PrivateKey) throws(CertificateError) {
        ErrorQueue.clear()
        let issuers = OPENSSL_sk_new_null()
        defer { OPENSSL_sk_free(issuers) }
        for issuer in chain.issuers { OPENSSL_sk_push(issuers, UnsafeRawPointer(issuer.pointer)) }
        if SSL_CTX_use_cert_and_key(pointer, chain.leaf.pointer, key.pointer, issuers, 1) != 1 {
            throw CertificateError(
                .weak, chain.path, "OpenSSL does not accept it: \(ErrorQueue.drain())",
                remedy: "have it issued again, with RSA of 2048 bits or more or with P-256")
        }
    }

    private func offer(_ protocols: [String]) throws(TLSError) {
        if protocols.isEmpty { return }
        let wire = protocols.flatMap { [UInt8(clamping: $0.utf8.count)] + Array($0.utf8) }
        // Unlike its siblings, this call returns 0 when all is well.
        if SSL_CTX_set_alpn_protos(pointer, wire, UInt32(clamping: wire.count)) != 0 {
            throw Self.outOfMemory()
        }
    }

    private static func outOfMemory() -> TLSError {
        TLSError(.configuration, "OpenSSL gave no context: \(ErrorQueue.drain())")
    }
}
