internal import CPlatform
internal import Glibc

/// What a read or write achieved. "Would block" is a result, not an error.
public enum TransferResult: Sendable, Equatable {
    case bytes(Int)
    case wouldBlock
    case endOfStream
}

/// A connected, non-blocking stream socket on one event loop.
///
/// Calls try the kernel first and never suspend; a task that got `wouldBlock` sleeps on the
/// socket's `waiter` and tries again.
public final class Socket: Transport {
    let registration: Registration

    /// Takes over a connected or connecting descriptor.
    init(owning descriptor: Int32, loop: EventLoop) throws(Errno) {
        registration = Registration(descriptor: descriptor, loop: loop)
        do throws(Errno) {
            try loop.register(
                registration,
                events: CPlatform_EPOLLIN | CPlatform_EPOLLOUT | CPlatform_EPOLLRDHUP
                    | CPlatform_EPOLLET)
        } catch {
            Syscalls.close(descriptor)
            registration.isOpen = false
            throw error
        }
    }

    deinit {
        close()
    }

    /// Starts a connection. It is established, or failed, when `connectResult` says so.
    ///
    /// - Throws: what socket(2) or connect(2) say at once.
    public static func connect(to address: SocketAddress, loop: EventLoop) throws(Errno) -> Socket {
        let descriptor = try Syscalls.socket(family: address.family)
        do throws(Errno) {
            try Syscalls.connect(descriptor, address)
        } catch {
            // A full backlog of a local socket is EAGAIN and, unlike EINPROGRESS, starts nothing.
            if error != .inProgress {
                Syscalls.close(descriptor)
                throw error
            }
        }
        let socket = try Socket(owning: descriptor, loop: loop)
        if !address.isLocal { socket.disableDelay() }
        socket.registration.isWritable = false
        socket.registration.isReadable = false
        return socket
    }

    /// For system calls of this module.
    var descriptor: Int32 { registration.descriptor }

    /// The task that is woken by this socket.
    public var waiter: Waiter? {
        get { registration.waiter }
        set { registration.waiter = newValue }
    }

    /// There may be bytes to read, or an end.
    @inline(__always)
    public var isReadable: Bool { registration.isReadable }

    /// The peer closed its sending side, or the connection broke. Bytes may still wait to be read.
    @inline(__always)
    public var isPeerClosed: Bool { registration.isPeerClosed }

    /// The connection is of no use any more.
    @inline(__always)
    public var isBroken: Bool { registration.isBroken }

    /// How the connect went: nil while it is under way.
    public func connectResult() -> Result<Void, Errno>? {
        if !registration.isWritable { return nil }
        if let error = Syscalls.pendingError(registration.descriptor) { return .failure(error) }
        return .success(())
    }

    /// Reads what is there, into the free space of `buffer`, which must have some.
    ///
    /// - Throws: the kernel's error; the connection is then broken.
    @inline(__always)
    public func read(into buffer: ByteBuffer) throws(Errno) -> TransferResult {
        var result = TransferResult.wouldBlock
        _ = try buffer.appendUnsafe { free throws(Errno) in
            result = try read(into: free)
            guard case .bytes(let count) = result else { return 0 }
            return count
        }
        return result
    }

    /// Reads what is there, into memory that is not empty.
    ///
    /// - Throws: the kernel's error; the connection is then broken.
    @inline(__always)
    public func read(into free: UnsafeMutableRawBufferPointer) throws(Errno) -> TransferResult {
        if !registration.isReadable { return .wouldBlock }
        let count: Int
        do throws(Errno) {
            count = try Syscalls.receive(registration.descriptor, free)
        } catch {
            if error != .wouldBlock { throw error }
            registration.isReadable = false
            return .wouldBlock
        }
        if count == 0 { return .endOfStream }
        // A short read emptied the socket (epoll(7)): the next bytes raise a new edge. An end that
        // is already known raises none.
        if count < free.count && !registration.isPeerClosed { registration.isReadable = false }
        return .bytes(count)
    }

    /// Writes as much as the kernel takes of `first` and, behind it, `second`.
    ///
    /// - Throws: the kernel's error; the connection is then broken.
    @inline(__always)
    public func write(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
    ) throws(Errno) -> TransferResult {
        if !registration.isWritable { return .wouldBlock }
        let wanted = first.count + second.count
        if wanted == 0 { return .bytes(0) }
        let count: Int
        do throws(Errno) {
            if second.isEmpty {
                count = try Syscalls.send(registration.descriptor, first)
            } else if first.isEmpty {
                count = try Syscalls.send(registration.descriptor, second)
            } else {
                count = try Syscalls.send(registration.descriptor, first, second)
            }
        } catch {
            if error != .wouldBlock { throw error }
            registration.isWritable = false
            return .wouldBlock
        }
        if count < wanted { registration.isWritable = false }
        return .bytes(count)
    }

    /// Whether an idle connection still stands: no end, no error, and no byte that nobody asked
    /// for. Asks the kernel.
    public func isQuiet() -> Bool {
        var byte: UInt8 = 0
        return withUnsafeMutableBytes(of: &byte) { room in
            do throws(Errno) {
                _ = try Syscalls.receive(registration.descriptor, room)
                return false
            } catch {
                return error == .wouldBlock
            }
        }
    }

    /// Ends our sending side; the peer reads an end of stream after what was written.
    public func finishWriting() {
        if registration.isOpen { Syscalls.shutdownWrite(registration.descriptor) }
    }

    /// Makes close(2) send a reset, so that the peer cannot take a cut-off answer for a complete
    /// one.
    public func resetOnClose() {
        if registration.isOpen { Syscalls.setLinger(registration.descriptor) }
    }

    /// Ends both directions at once but keeps the descriptor: reads see an end, writes fail.
    public func breakOff() {
        if registration.isOpen { Syscalls.shutdown(registration.descriptor) }
    }

    /// Closes the descriptor. Closing twice is allowed.
    public func close() {
        if !registration.isOpen { return }
        registration.isOpen = false
        registration.waiter = nil
        registration.loop.unregister(registration)
        Syscalls.close(registration.descriptor)
    }

    /// Sends small writes at once (TCP_NODELAY).
    func disableDelay() {
        // A socket without the option (local, or already reset) works all the same.
        try? Syscalls.setOption(registration.descriptor, level: Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    }
}
