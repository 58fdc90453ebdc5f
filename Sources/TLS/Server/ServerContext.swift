internal import COpenSSL

/// The OpenSSL context for one certificate of a listener. Its callbacks find their way back through
/// the context's application data.
///
/// Safe to be Sendable: it is never changed after `init`.
final class ServerContext: @unchecked Sendable {
    /// What OpenSSL works with.
    let context: TLSContext
    /// What clients are shown.
    let certificate: ServerCertificate
    /// Opens and seals session tickets.
    let tickets: TicketKeys
    /// The listener's protocols as ALPN spells them (RFC 7301): each behind its length. Owned.
    private let protocols: UnsafeMutableBufferPointer<UInt8>
    /// The contexts of the other certificates. Whoever holds a stream holds the server, which
    /// holds this.
    private unowned let server: TLSServer

    init(
        _ certificate: ServerCertificate, _ settings: TLSServerSettings,
        _ authorities: Authorities?,
        tickets: TicketKeys, server: TLSServer
    ) throws(CertificateError) {
        self.certificate = certificate
        self.tickets = tickets
        self.server = server
        do throws(TLSError) {
            context = try TLSContext.server(trustOrigin: settings.clientCA ?? "")
        } catch {
            throw Self.failure(certificate, error.detail)
        }
        let wire = settings.protocols.flatMap { [UInt8(clamping: $0.utf8.count)] + Array($0.utf8) }
        protocols = .allocate(capacity: wire.count)
        _ = protocols.initialize(from: wire)
        SSL_CTX_set_ex_data(context.pointer, 0, Unmanaged.passUnretained(self).toOpaque())
        try context.use(certificate.chain, certificate.key)
        if !restrict(settings) || !bindSessions(authorities) {
            throw Self.failure(certificate, ErrorQueue.drain())
        }
        installCallbacks()
        authorities?.install(in: context)
    }

    /// What only a broken OpenSSL could make happen.
    private static func failure(
        _ certificate: ServerCertificate, _ reason: String
    ) -> CertificateError {
        CertificateError(
            .format, certificate.files.certificate, "OpenSSL gives no context for it: \(reason)",
            remedy: "check the installation of OpenSSL and its configuration file")
    }

    deinit {
        protocols.deallocate()
    }

    /// The context that a stream works with now.
    static func of(_ stream: OpaquePointer) -> ServerContext? {
        guard let context = SSL_get_SSL_CTX(stream), let data = SSL_CTX_get_ex_data(context, 0)
        else { return nil }
        // Safe: `init` stored it, and the owner of the stream keeps it alive.
        return Unmanaged<ServerContext>.fromOpaque(data).takeUnretainedValue()
    }

    /// Versions, ciphers and groups: what Mozilla calls "intermediate" (guideline 5.7) without its
    /// finite-field and CBC suites, and the hybrid post-quantum group where OpenSSL has it.
    private func restrict(_ settings: TLSServerSettings) -> Bool {
        let pointer = context.pointer
        if settings.minimumVersion == .tls13 {
            _ = COpenSSL_SSL_CTX_set_min_proto_version(pointer, TLS1_3_VERSION)
        }
        _ = SSL_CTX_set_options(
            pointer,
            COpenSSL_SSL_OP_NO_COMPRESSION | COpenSSL_SSL_OP_CIPHER_SERVER_PREFERENCE
                | COpenSSL_SSL_OP_PRIORITIZE_CHACHA)
        if settings.usesKernel { _ = SSL_CTX_set_options(pointer, COpenSSL_SSL_OP_ENABLE_KTLS) }
        let ciphers = "ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL"
        let groups = "X25519:P-256:P-384"
        return
            SSL_CTX_set_cipher_list(pointer, ciphers) == 1
            && (COpenSSL_SSL_CTX_set1_groups_list(pointer, "X25519MLKEM768:" + groups) == 1
                || COpenSSL_SSL_CTX_set1_groups_list(pointer, groups) == 1)
    }

    private func installCallbacks() {
        let pointer = context.pointer
        _ = COpenSSL_SSL_CTX_set_tlsext_servername_callback(pointer) { stream, _, _ in
            guard let stream, let context = ServerContext.of(stream) else {
                return SSL_TLSEXT_ERR_NOACK
            }
            return context.server.choose(for: stream)
                ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK
        }
        SSL_CTX_set_alpn_select_cb(
            pointer,
            { stream, chosen, chosenLength, offered, offeredLength, _ in
                guard let stream, let context = ServerContext.of(stream), let chosen,
                    let chosenLength
                else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                return context.selectProtocol(
                    into: chosen, chosenLength, offered, offeredLength)
            }, nil)
        _ = COpenSSL_SSL_CTX_set_tlsext_status_cb(pointer) { stream, _ in
            guard let stream, let staple = ServerContext.of(stream)?.certificate.staple,
                staple.isFresh(at: wallSeconds()),
                COpenSSL_SSL_set_ocsp_response(stream, staple.bytes, staple.bytes.count) == 1
            else { return SSL_TLSEXT_ERR_NOACK }
            return SSL_TLSEXT_ERR_OK
        }
        SSL_CTX_set_tlsext_ticket_key_evp_cb(pointer, TicketKeys.callback)
    }

    /// RFC 7301, section 3.2: ours are preferred; without a common one the handshake fails.
    private func selectProtocol(
        into chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>,
        _ chosenLength: UnsafeMutablePointer<UInt8>, _ offered: UnsafePointer<UInt8>?,
        _ offeredLength: UInt32
    ) -> Int32 {
        var found: UnsafeMutablePointer<UInt8>?
        let result = SSL_select_next_proto(
            &found, chosenLength, protocols.baseAddress, UInt32(clamping: protocols.count), offered,
            offeredLength)
        chosen.pointee = UnsafePointer(found)
        return result == OPENSSL_NPN_NEGOTIATED
            ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL
    }

    /// Sessions live in tickets alone, so any loop can resume them: one for a handshake, because apps
    /// open one connection, and sealing costs. They hold what was verified of the client, so one that
    /// began under other authorities is of no use here.
    private func bindSessions(_ authorities: Authorities?) -> Bool {
        let pointer = context.pointer
        _ = COpenSSL_SSL_CTX_set_session_cache_mode(pointer, Int(SSL_SESS_CACHE_OFF))
        // A client certificate is looked at again within the hour.
        SSL_CTX_set_timeout(
            pointer, authorities == nil ? Int(TicketKeys.rotation.components.seconds) : 3600)
        if SSL_CTX_set_num_tickets(pointer, 1) != 1 { return false }
        let identity = authorities?.digest ?? [0]
        return SSL_CTX_set_session_id_context(pointer, identity, UInt32(identity.count)) == 1
    }
}
