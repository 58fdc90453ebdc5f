internal import Reactor
internal import TLS

/// A connection to one server: bytes out, replies in, plain or with TLS. Nothing in it waits but
/// `call`.
final class RedisLink {
    private static let readBytes = 16 << 10

    /// What waits to be sent.
    let outgoing = ByteBuffer(capacity: 1024)
    private let socket: Socket
    private let stream: TLSStream?
    private let waiter: Waiter
    private let received = ByteBuffer(capacity: readBytes)
    private let reader = RedisReader()

    /// Takes over a connected socket.
    ///
    /// - Parameter stream: TLS over it, with the handshake done.
    init(_ socket: Socket, stream: TLSStream?, waiter: Waiter) {
        self.socket = socket
        self.stream = stream
        self.waiter = waiter
    }

    /// Sends what the socket takes of `outgoing`.
    func flush() throws(RedisFailure) {
        do {
            while !outgoing.isEmpty {
                let result = try outgoing.withUnsafeBytes { bytes in
                    try stream?.write(bytes) ?? socket.write(bytes)
                }
                guard case .bytes(let count) = result else { return }
                outgoing.consume(count)
            }
            _ = try stream?.flush()
        } catch {
            throw RedisFailure(.disconnected, "the connection broke: \(error)")
        }
    }

    /// The next reply; nil when none is complete yet.
    func next() throws(RedisFailure) -> RedisReply? {
        while true {
            if let reply = try parse() { return reply }
            if try !receive() { return nil }
        }
    }

    /// Sends commands and waits for their replies; for the time before anybody else uses the
    /// connection.
    func call(_ commands: [RedisCommand], until deadline: MonotonicInstant)
        async throws(RedisFailure) -> [RedisReply]
    {
        for command in commands { command.append(to: outgoing) }
        var replies: [RedisReply] = []
        while true {
            try flush()
            while replies.count < commands.count, let reply = try next() { replies.append(reply) }
            if replies.count == commands.count { return replies }
            if await waiter.wait(until: deadline) == .timedOut {
                throw RedisFailure(.timeout, "it accepts connections but does not answer in time")
            }
        }
    }

    /// Ends the connection.
    func close() {
        stream?.finishWriting()
        socket.close()
    }

    private func parse() throws(RedisFailure) -> RedisReply? {
        do throws(RedisGarbage) {
            if !received.isEmpty { try reader.feed(received) }
            return try reader.next()
        } catch {
            throw RedisFailure(.protocolError, "it sends what makes no sense: \(error.reason)")
        }
    }

    /// - Returns: whether bytes came.
    private func receive() throws(RedisFailure) -> Bool {
        received.reserve(Self.readBytes)
        let result: TransferResult
        do {
            result = try stream?.read(into: received) ?? socket.read(into: received)
        } catch {
            throw RedisFailure(.disconnected, "the connection broke: \(error)")
        }
        switch result {
        case .bytes: return true
        case .wouldBlock: return false
        case .endOfStream: throw RedisFailure(.disconnected, "it closed the connection")
        }
    }
}
