internal import COpenSSL
internal import Reactor

/// The bytes below TLS: what OpenSSL reads comes from a socket, what it writes is collected and
/// sent in one call.
///
/// Its own BIO rather than OpenSSL's socket BIO: the socket keeps its edge-triggered bookkeeping,
/// the records of one turn leave in one system call, and a write never has to be repeated with
/// the same pointer.
final class SocketTransport {
    // One record at most: 2^14 bytes of content, with header, tag and padding (RFC 8446, section
    // 5.2).
    private static let recordBytes = (1 << 14) + 256 + 5

    /// The transport below TLS.
    let socket: Socket
    private let incoming = ByteBuffer(capacity: recordBytes)
    private let outgoing = ByteBuffer(capacity: 1024)
    /// What the kernel said when the connection broke.
    private(set) var failure: Errno?
    /// The peer sends nothing more.
    private(set) var isAtEnd = false

    init(_ socket: Socket) {
        self.socket = socket
    }

    /// Whether bytes wait to be sent.
    var hasOutgoing: Bool { !outgoing.isEmpty }

    /// Sends what was collected, as far as the kernel takes it. A failure is kept in `failure`.
    func flush() {
        while !outgoing.isEmpty && failure == nil {
            do throws(Errno) {
                let result = try outgoing.withUnsafeBytes { bytes throws(Errno) in
                    try socket.write(bytes)
                }
                guard case .bytes(let count) = result else { return }
                outgoing.consume(count)
            } catch {
                failure = error
            }
        }
    }

    /// Makes the BIO that stands for this transport. Whoever owns it must keep the transport
    /// alive longer.
    func makeBIO() -> OpaquePointer? {
        guard let method = Self.method.pointer, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    /// - Returns: bytes copied; 0 at the end; nil when there are none yet, or the connection broke.
    private func receive(into target: UnsafeMutableRawBufferPointer) -> Int? {
        if incoming.isEmpty && !isAtEnd && failure == nil {
            do throws(Errno) {
                switch try socket.read(into: incoming) {
                case .wouldBlock: return nil
                case .endOfStream: isAtEnd = true
                case .bytes: break
                }
            } catch {
                failure = error
            }
        }
        if failure != nil { return nil }
        let count = min(target.count, incoming.count)
        incoming.withUnsafeBytes { source in
            target.copyMemory(from: UnsafeRawBufferPointer(rebasing: source.prefix(count)))
        }
        incoming.consume(count)
        return count
    }

    private func collect(_ bytes: UnsafeRawBufferPointer) {
        outgoing.reserve(bytes.count)
        _ = outgoing.appendUnsafe { free in
            free.copyMemory(from: bytes)
            return bytes.count
        }
    }

    /// Safe to be Sendable: filled once, then only read.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let method: Method = {
        let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        guard let method = BIO_meth_new(type, "portcullis socket") else {
            return Method(pointer: nil)
        }
        BIO_meth_set_read(method) { bio, bytes, count in
            guard let bio, let bytes, count > 0, let transport = SocketTransport.of(bio) else {
                return -1
            }
            BIO_clear_flags(bio, retryFlags)
            let target = UnsafeMutableRawBufferPointer(start: bytes, count: Int(count))
            if let copied = transport.receive(into: target) {
                return Int32(truncatingIfNeeded: copied)
            }
            if transport.failure == nil {
                BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
            }
            return -1
        }
        BIO_meth_set_write(method) { bio, bytes, count in
            guard let bio, let bytes, count > 0, let transport = SocketTransport.of(bio) else {
                return -1
            }
            BIO_clear_flags(bio, retryFlags)
            transport.collect(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
            return count
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH: return 1
            case BIO_CTRL_EOF:
                guard let bio, let transport = SocketTransport.of(bio) else { return 1 }
                return transport.isAtEnd && transport.incoming.isEmpty ? 1 : 0
            default: return 0
            }
        }
        return Method(pointer: method)
    }()

    private static let retryFlags = BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY

    private static func of(_ bio: OpaquePointer) -> SocketTransport? {
        guard let data = BIO_get_data(bio) else { return nil }
        // Safe: `makeBIO` stored it, and its owner keeps it alive.
        return Unmanaged<SocketTransport>.fromOpaque(data).takeUnretainedValue()
    }
}
