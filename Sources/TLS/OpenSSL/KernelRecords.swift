internal import Reactor

/// What OpenSSL itself says on a connection whose records the kernel seals: tickets and alerts. It
/// hands them over as plain text and announces their type; application data goes past it.
final class KernelRecords {
    /// More is no answer to anything: the peer makes us talk and does not listen.
    private static let longestQueue = 1 << 14
    /// TLS 1.3 and 1.2 alike (RFC 8446, section 5.1).
    private static let applicationData: UInt8 = 23

    /// What seals.
    let tls: KernelTLS
    /// Of the message that OpenSSL writes next.
    private var announced: UInt8?
    private var waiting: [(type: UInt8, bytes: ByteBuffer)] = []
    private var waitingCount = 0

    init(_ tls: KernelTLS) {
        self.tls = tls
    }

    /// Nothing waits to be sent.
    var isEmpty: Bool { waiting.isEmpty }

    /// The next message is of this type; nil: application data.
    func announce(_ type: UInt8?) {
        announced = type
    }

    /// Takes a message.
    ///
    /// - Throws: `noBufferSpace` when too much waits already.
    func collect(_ bytes: UnsafeRawBufferPointer) throws(Errno) {
        let type = announced ?? Self.applicationData
        announced = nil
        waitingCount += bytes.count
        if waitingCount > Self.longestQueue { throw .noBufferSpace }
        let buffer = ByteBuffer(capacity: bytes.count)
        buffer.append(copying: bytes)
        waiting.append((type, buffer))
    }

    /// Sends what was collected, as far as the kernel takes it.
    func flush() throws(Errno) {
        var sent = 0
        defer { waiting.removeFirst(sent) }
        while sent < waiting.count {
            let (type, buffer) = waiting[sent]
            let result = try buffer.withUnsafeBytes { bytes throws(Errno) in
                try tls.write(bytes, type: type)
            }
            guard case .bytes(let count) = result else { return }
            waitingCount -= count
            buffer.consume(count)
            if buffer.isEmpty { sent += 1 }
        }
    }
}
