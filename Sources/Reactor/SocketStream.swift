/// A connected socket as calls that wait: for small servers and probes, where one side speaks after
/// the other. The data path relays both directions at once and works with `Socket` itself.
///
/// A stream belongs to one event loop and is not thread-safe.
public final class SocketStream {
    private static let readSize = 4 << 10

    /// What was received and not consumed yet.
    public let received = ByteBuffer(capacity: readSize)
    private let socket: Socket
    private let waiter: Waiter
    private let loop: EventLoop
    private var isReceivingOver = false

    /// Takes over a connected socket.
    public init(_ socket: Socket, loop: EventLoop) {
        self.socket = socket
        self.loop = loop
        waiter = Waiter(loop: loop)
        socket.waiter = waiter
    }

    /// Connects, until `deadline` at the latest.
    ///
    /// - Returns: nil when nobody accepted in time.
    public static func connect(
        to address: SocketAddress, loop: EventLoop, until deadline: MonotonicInstant
    ) async -> SocketStream? {
        try? await open(to: address, loop: loop, until: deadline)
    }

    /// Connects, until `deadline` at the latest.
    ///
    /// - Throws: why there is no connection; `timedOut` when nobody accepted in time.
    public static func open(
        to address: SocketAddress, loop: EventLoop, until deadline: MonotonicInstant
    ) async throws(Errno) -> SocketStream {
        let stream = SocketStream(try Socket.connect(to: address, loop: loop), loop: loop)
        while true {
            switch stream.socket.connectResult() {
            case .success: return stream
            case nil where await stream.waiter.wait(until: deadline) == .ready: continue
            case .failure(let error):
                stream.close()
                throw error
            case nil:
                stream.close()
                throw .timedOut
            }
        }
    }

    /// Receives more bytes into `received`.
    ///
    /// - Returns: false when none will come, or when `deadline` passed. A peer that sends byte by
    ///   byte does not move the deadline.
    public func receive(until deadline: MonotonicInstant) async -> Bool {
        received.reserve(Self.readSize)
        while !isReceivingOver && loop.now < deadline {
            switch try? socket.read(into: received) {
            case .bytes: return true
            case .wouldBlock: _ = await waiter.wait(until: deadline)
            case .endOfStream, nil: return false
            }
        }
        return false
    }

    /// Ends the `receive` under way and every later one; what is being sent still goes out.
    public func endReceiving() {
        isReceivingOver = true
        waiter.wake()
    }

    /// Sends everything in `bytes`.
    ///
    /// - Returns: false when the connection broke, or when `deadline` passed first.
    public func send(_ bytes: ByteBuffer, until deadline: MonotonicInstant) async -> Bool {
        while !bytes.isEmpty {
            let result = try? bytes.withUnsafeBytes { bytes throws(Errno) in
                try socket.write(bytes)
            }
            switch result {
            case .bytes(let count): bytes.consume(count)
            case .wouldBlock where loop.now < deadline: _ = await waiter.wait(until: deadline)
            case .wouldBlock, .endOfStream, nil: return false
            }
        }
        return true
    }

    /// Ends our side and drops what the peer still sends, up to `limit` bytes or `deadline`: bytes
    /// that arrive at a closed socket would reset the connection under our last words (RFC 9112,
    /// section 9.6).
    public func linger(limit: Int, until deadline: MonotonicInstant) async {
        socket.finishWriting()
        var dropped = 0
        while dropped < limit {
            dropped += received.count
            received.removeAll()
            guard await receive(until: deadline) else { return }
        }
    }

    /// Ends the connection. Closing twice is allowed.
    public func close() {
        socket.close()
        waiter.invalidate()
    }
}
