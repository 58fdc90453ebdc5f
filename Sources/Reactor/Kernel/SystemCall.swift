/// One call into the kernel before it is made: which, and about what.
///
/// Only a `KernelStandIn` looks at it, so in release builds none is ever made.
public enum SystemCall {
    /// The memory is the caller's and valid until the call returns.
    case read(Int32, UnsafeMutableRawBufferPointer)
    case write(Int32, UnsafeRawBufferPointer)
    case receive(Int32, UnsafeMutableRawBufferPointer)
    case peek(Int32, UnsafeMutableRawBufferPointer)
    /// The second run of bytes goes behind the first.
    case send(Int32, UnsafeRawBufferPointer, UnsafeRawBufferPointer)
    case close(Int32)

    case open(String)
    case unlink(String)
    case makeDirectory(String)
    case access(String)
    case rename(String)
    case openDirectory(String)
    case statusOfPath(String)
    case status(Int32)
    case lock(Int32)
    case reserve(Int32)
    case truncate(Int32)

    case socket
    case socketPair
    case accept(Int32)
    case bind(Int32, SocketAddress)
    case listen(Int32)
    case connect(Int32, SocketAddress)
    case localAddress(Int32)
    case setOption(Int32)
    case pendingError(Int32)
    case resetOnClose(Int32)
    case shutdown(Int32)
    case shutdownWrite(Int32)
    case attachTLS(Int32)
    case startTLS(Int32)
    case sendRecord(Int32, type: UInt8, UnsafeRawBufferPointer)
    case nextRecord(Int32)
    case streamPosition(Int32)

    case makeEpoll
    case epollAdd(epoll: Int32, Int32, events: UInt32, data: UInt64)
    case epollRemove(epoll: Int32, Int32)
    case epollWait(epoll: Int32, capacity: Int, milliseconds: Int32)
    case makeEventDescriptor
    case raise(Int32)
    case lower(Int32)
    case poll(Int32)

    case monotonicClock
    case wallClock
    case randomNumber
    case startThread
    case spawn(String)
    case reap

    /// The name of its manual page: what a fault plan calls it.
    public var name: String {
        switch self {
        case .read: "read"
        case .write: "write"
        case .receive: "recv"
        case .peek: "peek"
        case .send: "send"
        case .close: "close"
        case .open: "open"
        case .unlink: "unlink"
        case .makeDirectory: "mkdir"
        case .access: "access"
        case .rename: "rename"
        case .openDirectory: "opendir"
        case .statusOfPath: "stat"
        case .status: "fstat"
        case .lock: "flock"
        case .reserve: "fallocate"
        case .truncate: "ftruncate"
        case .socket: "socket"
        case .socketPair: "socketpair"
        case .accept: "accept"
        case .bind: "bind"
        case .listen: "listen"
        case .connect: "connect"
        case .localAddress: "getsockname"
        case .setOption: "setsockopt"
        case .pendingError: "getsockopt"
        case .resetOnClose: "linger"
        case .shutdown, .shutdownWrite: "shutdown"
        case .attachTLS: "tcp_ulp"
        case .startTLS: "tls_tx"
        case .sendRecord: "sendmsg"
        case .nextRecord: "getsockopt_tls"
        case .streamPosition: "tcp_info"
        case .makeEpoll: "epoll_create"
        case .epollAdd, .epollRemove: "epoll_ctl"
        case .epollWait: "epoll_wait"
        case .makeEventDescriptor: "eventfd"
        case .raise: "eventfd_write"
        case .lower: "eventfd_read"
        case .poll: "poll"
        case .monotonicClock, .wallClock: "clock_gettime"
        case .randomNumber: "getrandom"
        case .startThread: "pthread_create"
        case .spawn: "posix_spawn"
        case .reap: "waitpid"
        }
    }

    /// The path that it is about; nil for other calls.
    var path: String? {
        switch self {
        case .open(let path), .unlink(let path), .makeDirectory(let path), .access(let path),
            .rename(let path), .openDirectory(let path), .statusOfPath(let path),
            .spawn(let path):
            path
        default: nil
        }
    }

    /// The descriptor that it is about; nil for other calls.
    public var descriptor: Int32? {
        switch self {
        case .read(let descriptor, _), .write(let descriptor, _), .receive(let descriptor, _),
            .peek(let descriptor, _),
            .send(let descriptor, _, _), .close(let descriptor), .status(let descriptor),
            .lock(let descriptor), .reserve(let descriptor), .truncate(let descriptor),
            .accept(let descriptor), .bind(let descriptor, _), .listen(let descriptor),
            .connect(let descriptor, _), .localAddress(let descriptor), .setOption(let descriptor),
            .pendingError(let descriptor), .resetOnClose(let descriptor),
            .shutdown(let descriptor), .shutdownWrite(let descriptor),
            .attachTLS(let descriptor), .startTLS(let descriptor),
            .sendRecord(let descriptor, _, _), .nextRecord(let descriptor),
            .streamPosition(let descriptor),
            .epollAdd(_, let descriptor, _, _), .epollRemove(_, let descriptor),
            .raise(let descriptor), .lower(let descriptor), .poll(let descriptor):
            descriptor
        default: nil
        }
    }
}

/// What is answered in the kernel's place.
public enum SystemCallAnswer {
    /// What the call returns: a descriptor, a count of bytes, a time.
    case value(Int)
    /// It fails. `interrupted` has it made once more, as after a signal.
    case failure(Errno)
    /// accept4(2): a connection and its peer.
    case accepted(Int32, from: SocketAddress)
    /// getsockname(2).
    case address(SocketAddress)
    /// epoll_wait(2): what happened, and to whom.
    case events([(events: UInt32, data: UInt64)])

    /// What the call returns where that is a number.
    var value: Int {
        switch self {
        case .value(let value): value
        case .failure: -1
        case .accepted(let descriptor, _): Int(descriptor)
        case .address: 0
        case .events(let events): events.count
        }
    }
}
