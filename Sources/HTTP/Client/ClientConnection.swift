internal import Reactor
internal import TLS

/// Why a connection of the client is of no use any more.
enum ConnectionFailure: Error {
    case timedOut
    case cancelled
    case broken(Errno)
    case tls(TLSError)
    /// The peer closed the connection although more was due.
    case ended

    /// What went wrong, in words.
    var reason: String {
        switch self {
        case .timedOut: "no answer in time"
        case .cancelled: "given up, because it is not needed any more"
        case .broken(let error): "the connection broke: \(error)"
        case .tls(let error): error.detail
        case .ended: "the connection was closed too early"
        }
    }

    /// The same, coarser, for whoever has to decide what to do about it.
    var cause: HTTPClientError.Cause {
        switch self {
        case .timedOut: .timedOut
        case .cancelled: .cancelled
        case .broken(let error) where error.isExhaustion: .exhausted
        case .broken, .tls, .ended: .disconnected
        }
    }

    init(_ impatience: Impatience) {
        switch impatience {
        case .timedOut: self = .timedOut
        case .cancelled: self = .cancelled
        }
    }
}

/// One connection of the client, plain or with TLS, seen as two calls that wait.
final class ClientConnection {
    private static let readBytes = 16 << 10

    /// What was received and not consumed yet.
    let received = ByteBuffer(capacity: readBytes)
    private let socket: Socket
    /// Of the request under way; nil while there is none.
    private var patience: RequestPatience?
    private var stream: TLSStream?

    init(_ socket: Socket, patience: RequestPatience) {
        self.socket = socket
        self.patience = patience
        socket.waiter = patience.waiter
    }

    /// Keeps the connection for another request.
    func rest() {
        patience = nil
        socket.waiter = nil
    }

    /// Ends the rest: `patience` is the next request's.
    ///
    /// - Returns: false when the peer ended the connection meanwhile, or sent what nobody asked
    ///   for. Messages of TLS itself (RFC 8446, section 4.6) are neither.
    func resume(_ patience: RequestPatience) -> Bool {
        self.patience = patience
        socket.waiter = patience.waiter
        if !received.isEmpty || socket.isPeerClosed { return false }
        received.reserve(Self.readBytes)
        do throws(ConnectionFailure) {
            return try read() == .wouldBlock
        } catch {
            return false
        }
    }

    /// Changes over to TLS.
    func secure(with context: TLSContext, host: String) async throws(ConnectionFailure) {
        while try !handshake(context, host) { try await wait() }
    }

    /// Sends everything in `bytes`.
    func send(_ bytes: ByteBuffer) async throws(ConnectionFailure) {
        while try !write(bytes) { try await wait() }
    }

    /// Reads more bytes into `received`.
    ///
    /// - Returns: false when the peer has ended its stream in good order.
    func receive() async throws(ConnectionFailure) -> Bool {
        received.reserve(Self.readBytes)
        while true {
            switch try read() {
            case .bytes: return true
            case .endOfStream: return false
            case .wouldBlock: try await wait()
            }
        }
    }

    /// Ends the connection.
    func close() {
        stream?.finishWriting()
        socket.close()
    }

    private func handshake(_ context: TLSContext, _ host: String) throws(ConnectionFailure) -> Bool
    {
        do throws(TLSError) {
            if let stream { return try stream.handshake() }
            let started = try TLSStream(client: context, socket: socket, host: host)
            stream = started
            return try started.handshake()
        } catch {
            throw .tls(error)
        }
    }

    /// - Returns: whether everything has left.
    private func write(_ bytes: ByteBuffer) throws(ConnectionFailure) -> Bool {
        while !bytes.isEmpty {
            guard case .bytes(let count) = try writeSome(of: bytes) else { return false }
            bytes.consume(count)
        }
        guard let stream else { return true }
        do throws(TLSError) {
            return try stream.flush()
        } catch {
            throw .tls(error)
        }
    }

    private func writeSome(of bytes: ByteBuffer) throws(ConnectionFailure) -> TransferResult {
        if let stream {
            do throws(TLSError) {
                return try bytes.withUnsafeBytes { bytes throws(TLSError) in try stream.write(bytes)
                }
            } catch {
                throw .tls(error)
            }
        }
        do throws(Errno) {
            return try bytes.withUnsafeBytes { bytes throws(Errno) in try socket.write(bytes) }
        } catch {
            throw .broken(error)
        }
    }

    private func read() throws(ConnectionFailure) -> TransferResult {
        if let stream {
            do throws(TLSError) {
                return try stream.read(into: received)
            } catch {
                throw .tls(error)
            }
        }
        do throws(Errno) {
            return try socket.read(into: received)
        } catch {
            throw .broken(error)
        }
    }

    private func wait() async throws(ConnectionFailure) {
        guard let patience else { throw .cancelled }
        do throws(Impatience) {
            try await patience.wait()
        } catch {
            throw ConnectionFailure(error)
        }
    }
}
