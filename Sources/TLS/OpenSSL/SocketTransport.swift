internal import COpenSSL
internal import Reactor

/// The bytes below TLS: OpenSSL reads straight from a socket; what it writes is collected and sent
/// in one call.
///
/// Its own BIO rather than OpenSSL's socket BIO: the socket keeps its edge-triggered bookkeeping,
/// the records of one turn leave in one system call, and a write never has to be repeated with
/// the same pointer. An idle connection holds no buffer.
final class SocketTransport {
    /// The transport below TLS.
    let socket: Socket
    /// Where the records of one call are collected; lent by whoever made the stream, and empty
    /// between calls.
    private let scratch: ByteBuffer
    /// What the socket did not take.
    private var waiting: ByteBuffer?
    /// What the kernel said when the connection broke.
    private(set) var failure: Errno?
    /// The peer sends nothing more.
    private(set) var isAtEnd = false
    /// What OpenSSL says now that the kernel seals records; nil where OpenSSL does.
    private(set) var records: KernelRecords?

    init(_ socket: Socket, scratch: ByteBuffer) {
        self.socket = socket
        self.scratch = scratch
    }

    /// Whether bytes wait to be sent.
    var hasOutgoing: Bool { waiting != nil || records?.isEmpty == false }

    /// Sends what was collected, as far as the kernel takes it; the rest is kept. A failure is
    /// kept in `failure`. Every call that may make OpenSSL write ends with it.
    @inline(__always)
    func flush() {
        if waiting != nil || !scratch.isEmpty || records != nil { flushAll() }
    }

    private func flushAll() {
        if let records { return flush(records) }
        if let waiting {
            send(waiting)
            if waiting.isEmpty { self.waiting = nil }
        }
        if self.waiting == nil { send(scratch) }
        if !scratch.isEmpty { keep() }
        if failure != nil { waiting = nil }
    }

    private func flush(_ records: KernelRecords) {
        if failure != nil || records.isEmpty { return }
        do throws(Errno) {
            try records.flush()
        } catch {
            failure = error
        }
    }

    /// The connection broke while somebody else wrote to the socket.
    func fail(_ error: Errno) {
        failure = error
    }

    /// Has the kernel seal what comes from now on, if it does and took everything so far.
    private func handOver(_ keys: UnsafeRawPointer) -> Bool {
        if records != nil { return false }
        flush()
        if waiting != nil || failure != nil { return false }
        guard let tls = try? KernelTLS(socket, keys: keys) else { return false }
        records = KernelRecords(tls)
        return true
    }

    private func send(_ bytes: ByteBuffer) {
        while !bytes.isEmpty && failure == nil {
            do throws(Errno) {
                let result = try bytes.withUnsafeBytes { bytes throws(Errno) in
                    try socket.write(bytes)
                }
                guard case .bytes(let count) = result else { return }
                bytes.consume(count)
            } catch {
                failure = error
            }
        }
    }

    /// The scratch buffer is for the next stream.
    private func keep() {
        if failure == nil {
            let buffer = waiting ?? ByteBuffer(capacity: scratch.count)
            let scratch = self.scratch
            buffer.append(scratch.bytes)
            waiting = buffer
        }
        scratch.removeAll()
    }

    /// Makes the BIO that stands for this transport. Whoever owns it must keep the transport
    /// alive longer.
    func makeBIO() -> OpaquePointer? {
        guard let method = Self.method.pointer, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    /// - Returns: bytes read; 0 at the end; nil when there are none yet, or the connection broke.
    private func receive(into target: UnsafeMutableRawBufferPointer) -> Int? {
        if failure != nil { return nil }
        if isAtEnd { return 0 }
        do throws(Errno) {
            switch try socket.read(into: target) {
            case .wouldBlock: return nil
            case .bytes(let count): return count
            case .endOfStream:
                isAtEnd = true
                return 0
            }
        } catch {
            failure = error
            return nil
        }
    }

    private func collect(_ bytes: UnsafeRawBufferPointer) {
        if let records { return collect(bytes, records) }
        scratch.reserve(bytes.count)
        _ = scratch.appendUnsafe { free in
            free.copyMemory(from: bytes)
            return bytes.count
        }
    }

    private func collect(_ bytes: UnsafeRawBufferPointer, _ records: KernelRecords) {
        do throws(Errno) {
            try records.collect(bytes)
        } catch {
            failure = error
        }
    }

    /// Answers what OpenSSL asks where `SSL_OP_ENABLE_KTLS` is set. Received records stay with
    /// OpenSSL: it has read ahead.
    private func control(_ command: Int32, _ number: Int, _ pointer: UnsafeMutableRawPointer?)
        -> Int
    {
        switch command {
        case Self.setKeys:
            guard number != 0, let pointer else { return 0 }
            return handOver(pointer) ? 1 : 0
        case BIO_CTRL_GET_KTLS_SEND: return records == nil ? 0 : 1
        case Self.announceType: records?.announce(UInt8(truncatingIfNeeded: number))
        case Self.withdrawType: records?.announce(nil)
        default: break
        }
        return 0
    }

    // <openssl/bio.h> has these three in a comment only: what a BIO needs that is not OpenSSL's own.
    private static let setKeys: Int32 = 72
    private static let announceType: Int32 = 74
    private static let withdrawType: Int32 = 75

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
            if let read = transport.receive(into: target) {
                return Int32(truncatingIfNeeded: read)
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
        BIO_meth_set_ctrl(method) { bio, command, number, pointer in
            switch command {
            case BIO_CTRL_FLUSH: return 1
            case BIO_CTRL_EOF:
                guard let bio, let transport = SocketTransport.of(bio) else { return 1 }
                return transport.isAtEnd ? 1 : 0
            default:
                guard let bio, let transport = SocketTransport.of(bio) else { return 0 }
                return transport.control(command, number, pointer)
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
