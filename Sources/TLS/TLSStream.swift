internal import COpenSSL
public import Reactor

/// A TLS connection over a socket, with the socket's own shape: calls try and never suspend,
/// "would block" is a result, and the task sleeps on the socket's waiter.
///
/// TLS may have to send in order to read. Every call first sends what waits, so a task that is
/// woken and repeats its call makes progress whichever it is.
public final class TLSStream {
    // One record: more would only collect in memory.
    private static let writeBytes = 1 << 14

    private let stream: OpaquePointer
    private let context: TLSContext
    private let transport: SocketTransport
    private let verification: PeerVerification
    private var failure: TLSError?

    /// A connection that we opened. Nothing is sent before `handshake`.
    ///
    /// - Parameter host: Name, or IPv4 or IPv6 literal, that the peer's certificate has to be for.
    public convenience init(client context: TLSContext, socket: Socket, host: String)
        throws(TLSError)
    {
        try self.init(context: context, socket: socket)
        try expect(host)
        SSL_set_connect_state(stream)
    }

    /// A connection that we accepted.
    public convenience init(server context: TLSContext, socket: Socket) throws(TLSError) {
        try self.init(context: context, socket: socket)
        SSL_set_accept_state(stream)
    }

    private init(context: TLSContext, socket: Socket) throws(TLSError) {
        ErrorQueue.clear()
        guard let stream = SSL_new(context.pointer) else {
            throw TLSError(.configuration, "OpenSSL gave no stream: \(ErrorQueue.drain())")
        }
        self.stream = stream
        self.context = context
        transport = SocketTransport(socket)
        verification = PeerVerification(trustOrigin: context.trustOrigin)
        guard let bio = transport.makeBIO() else {
            throw TLSError(.configuration, "OpenSSL gave no BIO: \(ErrorQueue.drain())")
        }
        // The stream owns both halves, which are one.
        SSL_set_bio(stream, bio, bio)
        verification.observe(stream)
    }

    deinit {
        // Frees the BIO too; the objects that the callbacks use are still there.
        SSL_free(stream)
    }

    /// The negotiated version, such as "TLSv1.3".
    public var version: String { String(cString: SSL_get_version(stream)) }

    /// Does what can be done of the handshake without waiting.
    ///
    /// - Returns: true when it is complete; false when the peer's bytes are awaited.
    /// - Throws: `certificate` when the peer is not to be believed, and what else ends a
    ///   connection.
    public func handshake() throws(TLSError) -> Bool {
        if let failure { throw failure }
        transport.flush()
        ErrorQueue.clear()
        let result = SSL_do_handshake(stream)
        transport.flush()
        if result == 1 { return true }
        if SSL_get_error(stream, result) == SSL_ERROR_WANT_READ && transport.failure == nil {
            return false
        }
        throw fail(during: "the handshake")
    }

    /// Completes the handshake, sleeping on the socket's waiter, which must be set.
    ///
    /// - Throws: `timedOut` at `deadline`, and what `handshake()` throws.
    public func handshake(until deadline: MonotonicInstant) async throws(TLSError) {
        while try !handshake() {
            guard let waiter = transport.socket.waiter else {
                preconditionFailure("a handshake needs a waiter")
            }
            if await waiter.wait(until: deadline) == .timedOut {
                throw TLSError(.timedOut, "the peer did not complete the handshake in time")
            }
        }
    }

    /// Reads what is there, into the free space of `buffer`, which must have some. `endOfStream`
    /// is the peer's close_notify; a connection that ends without one is an error, because bytes
    /// may be missing.
    public func read(into buffer: ByteBuffer) throws(TLSError) -> TransferResult {
        if let failure { throw failure }
        transport.flush()
        ErrorQueue.clear()
        var result: Int32 = 0
        let count = buffer.appendUnsafe { free in
            var count = 0
            result = SSL_read_ex(stream, free.baseAddress, free.count, &count)
            return result == 1 ? count : 0
        }
        // Reading may have made an answer: a new key, an alert.
        defer { transport.flush() }
        if result == 1 { return .bytes(count) }
        switch SSL_get_error(stream, result) {
        case SSL_ERROR_WANT_READ where transport.failure == nil: return .wouldBlock
        case SSL_ERROR_ZERO_RETURN: return .endOfStream
        default: throw fail(during: "the transfer")
        }
    }

    /// Takes up to one record of `bytes`. They are encrypted at once; what the socket does not
    /// take is sent by the next calls, and until then nothing more is taken.
    public func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> TransferResult {
        if try !flush() { return .wouldBlock }
        if bytes.isEmpty { return .bytes(0) }
        ErrorQueue.clear()
        var count = 0
        let result = SSL_write_ex(
            stream, bytes.baseAddress, min(bytes.count, Self.writeBytes), &count)
        if result == 1 {
            transport.flush()
            return .bytes(count)
        }
        if SSL_get_error(stream, result) == SSL_ERROR_WANT_READ && transport.failure == nil {
            return .wouldBlock
        }
        throw fail(during: "the transfer")
    }

    /// Sends what waits to be sent.
    ///
    /// - Returns: whether the socket took everything.
    public func flush() throws(TLSError) -> Bool {
        if let failure { throw failure }
        transport.flush()
        if transport.failure != nil { throw fail(during: "the transfer") }
        return !transport.hasOutgoing
    }

    /// Says close_notify: the peer knows that nothing is missing. The socket stays open.
    public func finishWriting() {
        if failure != nil || SSL_is_init_finished(stream) == 0 { return }
        ErrorQueue.clear()
        _ = SSL_shutdown(stream)
        ErrorQueue.clear()
        transport.flush()
    }

    private func expect(_ host: String) throws(TLSError) {
        ErrorQueue.clear()
        let isSet: Bool
        if let address = SocketAddress(literal: host, port: 0) {
            // RFC 6066, section 3: a literal is no server name.
            let bytes = address.ipBytes
            isSet = X509_VERIFY_PARAM_set1_ip(SSL_get0_param(stream), bytes, bytes.count) == 1
        } else {
            SSL_set_hostflags(stream, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
            isSet =
                SSL_set1_host(stream, host) == 1
                && COpenSSL_SSL_set_tlsext_host_name(stream, host) == 1
        }
        if !isSet {
            throw TLSError(.configuration, "\"\(host)\" is no host name: \(ErrorQueue.drain())")
        }
    }

    /// Classifies what ended the connection; nothing but `deinit` touches OpenSSL afterwards.
    private func fail(during activity: String) -> TLSError {
        let isNotTLS = ErrorQueue.latestReason == SSL_R_WRONG_VERSION_NUMBER
        let reason = ErrorQueue.drain()
        let error: TLSError
        if let refusal = verification.failure {
            error = TLSError(.certificate, refusal)
        } else if let broken = transport.failure {
            error = TLSError(.transport, "the connection broke during \(activity): \(broken)")
        } else if transport.isAtEnd {
            error = TLSError(
                .truncated, "the peer closed the connection in the middle of \(activity)")
        } else if isNotTLS {
            error = TLSError(.negotiation, "the peer does not speak TLS on this port (\(reason))")
        } else {
            error = TLSError(.negotiation, reason)
        }
        failure = error
        return error
    }
}
