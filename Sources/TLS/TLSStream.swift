internal import COpenSSL
public import Reactor

/// A TLS connection over a socket, with the socket's own shape: calls try and never suspend,
/// "would block" is a result, and the task sleeps on the socket's waiter.
///
/// TLS may have to send in order to read. Every call first sends what waits, so a task that is
/// woken and repeats its call makes progress whichever it is.
public final class TLSStream {
    private static let recordBytes = 1 << 14
    /// What one write may collect in the scratch buffer before it is sent.
    private static let turnBytes = 4 * recordBytes

    /// The connection below. Read and write through the stream only.
    public let socket: Socket
    /// Why the connection is of no use any more; nil as long as it is.
    public private(set) var failure: TLSError?
    /// OpenSSL has bytes that `read` would bring without the socket: no event will tell.
    public private(set) var hasBuffered = false

    let stream: OpaquePointer
    /// What must live as long as the stream: the context, or the server that its callbacks find.
    private let owner: AnyObject
    let transport: SocketTransport
    private let verification: PeerVerification?

    /// A connection that we opened. Nothing is sent before `handshake`.
    ///
    /// - Parameter host: Name, or IPv4 or IPv6 literal, that the peer's certificate has to be for.
    /// - Parameter resumption: Sessions with this peer; one that fits is used, and new ones go there.
    /// - Parameter scratch: See the server's.
    public convenience init(
        client context: TLSContext, socket: Socket, host: String,
        resumption: TLSResumption? = nil, scratch: ByteBuffer = ByteBuffer(capacity: 1024)
    ) throws(TLSError) {
        let verification = PeerVerification(trustOrigin: context.trustOrigin)
        try self.init(
            context, owner: context, socket: socket, scratch: scratch, verification: verification)
        try expect(host)
        SSL_set_connect_state(stream)
        verification.resumption = resumption?.attempt(stream, context, host: host)
    }

    /// A connection that we accepted.
    public convenience init(server context: TLSContext, socket: Socket) throws(TLSError) {
        try self.init(
            context, owner: context, socket: socket, scratch: ByteBuffer(capacity: 1024),
            verification: nil)
        SSL_set_accept_state(stream)
    }

    /// A connection that we accepted, with the certificate that its client will ask for.
    ///
    /// - Parameter scratch: An empty buffer in which calls collect what they send. It is empty
    ///   again when they return, so all streams of a loop may share one.
    public convenience init(server: TLSServer, socket: Socket, scratch: ByteBuffer)
        throws(TLSError)
    {
        guard let context = server.initial else {
            throw TLSError(.configuration, "the server has no certificate")
        }
        let clientCA = server.settings.clientCA
        try self.init(
            context, owner: server, socket: socket, scratch: scratch,
            verification: clientCA.map { PeerVerification(trustOrigin: $0) })
        SSL_set_accept_state(stream)
    }

    private init(
        _ context: TLSContext, owner: AnyObject, socket: Socket, scratch: ByteBuffer,
        verification: PeerVerification?
    ) throws(TLSError) {
        ErrorQueue.clear()
        guard let stream = SSL_new(context.pointer) else {
            throw TLSError(.configuration, "OpenSSL gave no stream: \(ErrorQueue.drain())")
        }
        self.stream = stream
        self.owner = owner
        self.socket = socket
        self.verification = verification
        transport = SocketTransport(socket, scratch: scratch)
        guard let bio = transport.makeBIO() else {
            throw TLSError(.configuration, "OpenSSL gave no BIO: \(ErrorQueue.drain())")
        }
        // The stream owns both halves, which are one.
        SSL_set_bio(stream, bio, bio)
        verification?.observe(stream)
    }

    deinit {
        // Frees the BIO too; the objects that the callbacks use are still there.
        SSL_free(stream)
    }

    /// The negotiated version, such as "TLSv1.3".
    public var version: String { String(cString: SSL_get_version(stream)) }

    /// What the handshake found out.
    public var session: TLSSession { TLSSession(stream) }

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
        if result == 1 {
            hasBuffered = SSL_has_pending(stream) == 1
            return true
        }
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
            guard let waiter = socket.waiter else {
                preconditionFailure("a handshake needs a waiter")
            }
            if await waiter.wait(until: deadline) == .timedOut { throw .handshakeTimedOut }
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
            var total = 0
            // A record a call; the others that came with it need no system call.
            repeat {
                var count = 0
                result = SSL_read_ex(
                    stream, free.baseAddress.map { $0 + total }, free.count - total, &count)
                if result == 1 { total += count }
            } while result == 1 && total < free.count && SSL_has_pending(stream) == 1
            return total
        }
        // Reading may have made an answer: a new key, an alert.
        defer { transport.flush() }
        if count > 0 {
            // What ended the loop is found again by the next call.
            hasBuffered = result != 1 || SSL_has_pending(stream) == 1
            return .bytes(count)
        }
        hasBuffered = false
        switch SSL_get_error(stream, result) {
        case SSL_ERROR_WANT_READ where transport.failure == nil: return .wouldBlock
        case SSL_ERROR_ZERO_RETURN: return .endOfStream
        default: throw fail(during: "the transfer")
        }
    }

    /// Takes some of `bytes`. They are encrypted at once; what the socket does not take is sent by
    /// the next calls, and until then nothing more is taken.
    public func write(_ bytes: UnsafeRawBufferPointer) throws(TLSError) -> TransferResult {
        try write(bytes, UnsafeRawBufferPointer(start: nil, count: 0))
    }

    /// Takes some of `first` and, behind it, `second`, as `write(_:)` does.
    public func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer)
        throws(TLSError) -> TransferResult
    {
        if try !flush() { return .wouldBlock }
        if first.isEmpty && second.isEmpty { return .bytes(0) }
        if let kernel = transport.records?.tls { return try write(first, second, by: kernel) }
        var total = 0
        let isGood = encrypt(first, &total) && encrypt(second, &total)
        if total > 0 {
            // A failure is found again by the next call.
            transport.flush()
            return .bytes(total)
        }
        if isGood { return .wouldBlock }
        throw fail(during: "the transfer")
    }

    /// - Returns: false when OpenSSL failed.
    private func encrypt(_ bytes: UnsafeRawBufferPointer, _ total: inout Int) -> Bool {
        var done = 0
        while done < bytes.count && total < Self.turnBytes {
            ErrorQueue.clear()
            var count = 0
            let wanted = min(bytes.count - done, Self.recordBytes, Self.turnBytes - total)
            let result = SSL_write_ex(stream, bytes.baseAddress.map { $0 + done }, wanted, &count)
            if result != 1 {
                return SSL_get_error(stream, result) == SSL_ERROR_WANT_READ
                    && transport.failure == nil
            }
            done += count
            total += count
        }
        return true
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

    /// Whether an idle connection still stands: no end, no error, and no byte that nobody asked
    /// for. What is TLS's own business (tickets, new keys) is dealt with.
    public func isQuiet() -> Bool {
        if failure != nil || hasBuffered { return false }
        ErrorQueue.clear()
        var byte: UInt8 = 0
        var count = 0
        let result = SSL_peek_ex(stream, &byte, 1, &count)
        defer { transport.flush() }
        return result != 1 && transport.failure == nil
            && SSL_get_error(stream, result) == SSL_ERROR_WANT_READ
    }

    /// Says close_notify: the peer knows that nothing is missing. The socket stays open.
    public func finishWriting() {
        if failure != nil || SSL_is_init_finished(stream) == 0 { return }
        // Whoever waits for the kernel to hand it over asks more than once.
        if !isSealedByKernel || SSL_get_shutdown(stream) & SSL_SENT_SHUTDOWN == 0 {
            ErrorQueue.clear()
            _ = SSL_shutdown(stream)
            ErrorQueue.clear()
        }
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
    func fail(during activity: String) -> TLSError {
        let isNotTLS =
            ErrorQueue.latestReason == SSL_R_WRONG_VERSION_NUMBER
            || ErrorQueue.latestReason == SSL_R_HTTP_REQUEST
        let reason = ErrorQueue.drain()
        let error: TLSError
        if let refusal = verification?.failure {
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
        hasBuffered = false
        return error
    }
}
