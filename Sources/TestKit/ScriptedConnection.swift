internal import Reactor
internal import TLS

/// One connection of a scripted server, plain or with TLS.
final class ScriptedConnection {
    private let socket: Socket
    private let waiter: Waiter
    private var stream: TLSStream?
    private let received = ByteBuffer(capacity: 16 << 10)

    init(_ socket: Socket, _ waiter: Waiter) {
        self.socket = socket
        self.waiter = waiter
    }

    func close() {
        socket.close()
    }

    /// Ends our side in good order.
    func finish() {
        stream?.finishWriting()
        socket.finishWriting()
    }

    /// - Returns: whether the client agreed.
    func startTLS(_ context: TLSContext) async -> Bool {
        guard let stream = try? TLSStream(server: context, socket: socket) else { return false }
        self.stream = stream
        do throws(TLSError) {
            try await stream.handshake(until: .never)
            return true
        } catch {
            return false
        }
    }

    /// The next request up to and with its blank line, or its content of known length; nil when
    /// the client left.
    func readRequest() async -> String? {
        while true {
            let text = received.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            if let end = text.firstRange(of: "\r\n\r\n") {
                let head = text[..<end.upperBound]
                let count = head.utf8.count + Self.contentLength(head)
                if text.utf8.count >= count {
                    received.consume(count)
                    return String(decoding: text.utf8.prefix(count), as: UTF8.self)
                }
            }
            if await !receive() { return nil }
        }
    }

    private static func contentLength(_ head: Substring) -> Int {
        let name = "content-length:"
        let line = head.lowercased().split(separator: "\r\n").first { $0.hasPrefix(name) }
        return line.flatMap { Int($0.dropFirst(name.count).filter { $0 != " " }) } ?? 0
    }

    /// Reads until the client leaves.
    func drain() async {
        while await receive() { received.removeAll() }
    }

    /// - Returns: false when the client is gone.
    func write(_ bytes: [UInt8]) async -> Bool {
        let buffer = ByteBuffer(capacity: bytes.count)
        buffer.append(bytes.span)
        while true {
            guard let isDone = try? writeSome(of: buffer) else { return false }
            if isDone { return true }
            _ = await waiter.wait()
        }
    }

    private func writeSome(of buffer: ByteBuffer) throws -> Bool {
        while !buffer.isEmpty {
            let result = try buffer.withUnsafeBytes { bytes in
                try stream?.write(bytes) ?? socket.write(bytes)
            }
            guard case .bytes(let count) = result else { return false }
            buffer.consume(count)
        }
        return try stream?.flush() ?? true
    }

    private func receive() async -> Bool {
        received.reserve(4096)
        while true {
            switch try? stream?.read(into: received) ?? socket.read(into: received) {
            case .bytes: return true
            case .wouldBlock: _ = await waiter.wait()
            case .endOfStream, nil: return false
            }
        }
    }
}
