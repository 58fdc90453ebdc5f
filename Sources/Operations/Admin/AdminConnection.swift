internal import HTTP
internal import Reactor

/// The bytes of one connection of the admin listener. It belongs to the server's loop.
final class AdminConnection {
    let received = ByteBuffer(capacity: 2048)
    private let socket: Socket
    private let waiter: Waiter
    private let loop: EventLoop

    init(_ socket: Socket, _ waiter: Waiter, loop: EventLoop) {
        self.socket = socket
        self.waiter = waiter
        self.loop = loop
    }

    /// The path of a request whose head lies in `received`.
    func path(_ head: RequestHead) -> String {
        if head.target.isRewritten { return String(decoding: head.target.rewritten, as: UTF8.self) }
        let received = received
        let path = received.bytes.slice(head.target.path)
        return path.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// Waits for more bytes, or for a wake-up that brings none.
    ///
    /// - Returns: false when none will come, or when `deadline` passed.
    func readMore(until deadline: MonotonicInstant) async -> Bool {
        if loop.now >= deadline { return false }
        received.reserve(2048)
        do throws(Errno) {
            switch try socket.read(into: received) {
            case .bytes: return true
            case .endOfStream: return false
            case .wouldBlock: return await waiter.wait(until: deadline) == .ready
            }
        } catch {
            return false
        }
    }

    /// Writes all of `bytes`.
    ///
    /// - Returns: false when the connection broke, or when `deadline` passed first.
    func write(_ bytes: [UInt8], until deadline: MonotonicInstant) async -> Bool {
        let unsent = ByteBuffer(capacity: bytes.count)
        unsent.append(bytes.span)
        while !unsent.isEmpty {
            let result: TransferResult
            do throws(Errno) {
                result = try unsent.withUnsafeBytes { bytes throws(Errno) in
                    try socket.write(bytes)
                }
            } catch {
                return false
            }
            switch result {
            case .bytes(let count): unsent.consume(count)
            case .endOfStream: return false
            case .wouldBlock:
                if loop.now >= deadline { return false }
                if await waiter.wait(until: deadline) == .timedOut { return false }
            }
        }
        return true
    }

    /// Ends our side and reads what the client still sends, up to `bytes` or `deadline`, so that it
    /// can read our answer (RFC 9112, section 9.6).
    func linger(bytes: Int, until deadline: MonotonicInstant) async {
        socket.finishWriting()
        var dropped = 0
        while dropped < bytes, loop.now < deadline {
            dropped += received.count
            received.removeAll()
            guard await readMore(until: deadline) else { return }
        }
    }
}
