internal import HTTP
internal import Reactor

/// A client's and a server's HTTP/2 session, joined without a socket.
final class SessionPair {
    private static let ample = HeadLimits(bytes: 64 << 10, fields: 1000, target: 64 << 10)
    private static let now = MonotonicInstant(nanoseconds: 1)

    /// The side that asks.
    let client: HTTP2Session
    /// The side that answers.
    let server: HTTP2Session
    /// What has been asked.
    private(set) var requests: [HTTP2Stream] = []

    /// Two sessions that have greeted each other; nil without memory.
    init?() {
        var limits = HTTP2Limits()
        limits.head = Self.ample
        guard let client = try? HTTP2Session(role: .client, limits: limits, now: Self.now),
            let server = try? HTTP2Session(role: .server, limits: limits, now: Self.now)
        else { return nil }
        self.client = client
        self.server = server
        server.onRequest = { [unowned self] in requests.append($0) }
        if !settle() { return nil }
    }

    deinit {
        client.abandon()
        server.abandon()
    }

    /// Carries bytes to and fro until neither side has any.
    ///
    /// - Returns: false when a side ended the connection or reset a stream.
    func settle() -> Bool {
        let buffer = ByteBuffer(capacity: 1024)
        var isMoving = true
        while isMoving {
            isMoving = false
            for (from, to) in [(client, server), (server, client)] {
                buffer.removeAll()
                while from.produce(into: buffer, limit: 1 << 20) {}
                if buffer.isEmpty { continue }
                isMoving = true
                if (try? to.receive(buffer.bytes, now: Self.now)) == nil { return false }
            }
        }
        return true
    }
}

extension HTTP2Stream {
    /// Writes text that must be taken as a whole.
    func writeAll(_ bytes: [UInt8]) -> Bool {
        let result = bytes.withUnsafeBytes { bytes in
            try? write(bytes, UnsafeRawBufferPointer(start: nil, count: 0))
        }
        return result == .bytes(bytes.count)
    }

    /// Everything that can be read now.
    func readAll() -> [UInt8] {
        let buffer = ByteBuffer(capacity: 1024)
        while true {
            buffer.reserve(1024)
            guard case .bytes? = try? read(into: buffer) else { return buffer.copy }
        }
    }
}
