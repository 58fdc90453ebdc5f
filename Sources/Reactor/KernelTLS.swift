internal import CPlatform
internal import Glibc

/// The sending half of a TLS connection in the kernel: what is written is plain text, and records
/// leave the machine. It cannot be taken back, and the keys stay what they are: kernels before 6.14
/// change none.
///
/// A kernel may keep the end of a record that TCP had no room for. It sends that when there is, but
/// not once the socket was closed or shut down: `isHandedOver` tells.
public final class KernelTLS {
    private let socket: Socket
    /// What the kernel adds to each record, bytes.
    private let overhead: UInt64
    /// The number of its first record.
    private let firstRecord: UInt64
    /// Where the stream of the connection was when the kernel took over.
    private let start: UInt64
    /// Content that the kernel has taken, bytes.
    private var taken: UInt64 = 0

    /// Has the kernel seal what is sent from now on. Everything that was to be sent before must have
    /// been written.
    ///
    /// - Parameter keys: A `tls12_crypto_info_…` structure of the kernel's `linux/tls.h`.
    /// - Throws: why it does not: no support, no such cipher, no established TCP connection. The
    ///   socket is then what it was.
    public init(_ socket: Socket, keys: UnsafeRawPointer) throws(Errno) {
        var sequence: UInt64 = 0
        let overhead = CPlatform_tls_overhead(keys, &sequence)
        if overhead < 0 { throw .invalidArgument }
        try Syscalls.attachTLS(socket.descriptor)
        start = try Syscalls.streamPosition(socket.descriptor)
        try Syscalls.startTLS(socket.descriptor, keys: keys)
        self.socket = socket
        self.overhead = UInt64(clamping: overhead)
        firstRecord = sequence
    }

    /// Whether the kernel would do it for a TCP connection; a process that may load modules (root)
    /// makes it load its own.
    public static func isOffered() -> Bool {
        do throws(Errno) {
            let probe = try Syscalls.socket(family: AF_INET)
            defer { Syscalls.close(probe) }
            try Syscalls.attachTLS(probe)
            return true
        } catch {
            return error == .notConnected
        }
    }

    /// Sends application data, as `Socket.write` does.
    ///
    /// - Throws: the kernel's error; the connection is then broken.
    public func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer)
        throws(Errno) -> TransferResult
    {
        let result = try socket.write(first, second)
        if case .bytes(let count) = result { taken &+= UInt64(clamping: count) }
        return result
    }

    /// Sends as much of a message of another type as the kernel takes, as one record.
    ///
    /// - Throws: the kernel's error; the connection is then broken.
    public func write(_ bytes: UnsafeRawBufferPointer, type: UInt8) throws(Errno)
        -> TransferResult
    {
        let result = try socket.write(bytes, recordType: type)
        if case .bytes(let count) = result { taken &+= UInt64(clamping: count) }
        return result
    }

    /// TCP has all that was written: closing loses nothing. Asks the kernel.
    public var isHandedOver: Bool {
        if socket.isBroken || !socket.registration.isOpen { return true }
        do throws(Errno) {
            let records = try Syscalls.nextRecord(socket.descriptor) &- firstRecord
            let sealed = taken &+ records &* overhead
            // shutdown(2) has a place in the stream too.
            return try Syscalls.streamPosition(socket.descriptor) &- start >= sealed
        } catch {
            // Whatever else it says, waiting would not help.
            return error != .wouldBlock
        }
    }
}

extension Socket {
    /// Writes as much as the kernel takes of a TLS record that is no application data.
    fileprivate func write(_ bytes: UnsafeRawBufferPointer, recordType: UInt8) throws(Errno)
        -> TransferResult
    {
        if !registration.isWritable { return .wouldBlock }
        do throws(Errno) {
            let count = try Syscalls.sendRecord(registration.descriptor, type: recordType, bytes)
            if count < bytes.count { registration.isWritable = false }
            return .bytes(count)
        } catch {
            if error != .wouldBlock { throw error }
            registration.isWritable = false
            return .wouldBlock
        }
    }
}
