internal import CPlatform
internal import Glibc
internal import Synchronization

/// A listening descriptor that outlives any loop: made once, shared or handed over, closed when the
/// last owner lets go.
public final class ListeningDescriptor: Sendable {
    /// Open for as long as this object lives.
    let descriptor: Int32
    /// The address that it is bound to, with the real port when 0 was asked for.
    public let address: SocketAddress
    /// The socket file that goes when the descriptor does.
    private let ownPath: Mutex<String?>

    /// Binds and listens.
    ///
    /// - Parameter isShared: `SO_REUSEPORT`: every loop has a descriptor of its own on the same
    ///   port, and the kernel spreads connections.
    public init(_ address: SocketAddress, unixPath: String? = nil, isShared: Bool) throws(Errno) {
        let descriptor = try Syscalls.socket(family: address.family)
        do throws(Errno) {
            if !address.isLocal {
                try Syscalls.setOption(descriptor, level: SOL_SOCKET, SO_REUSEADDR, 1)
                if isShared {
                    try Syscalls.setOption(descriptor, level: SOL_SOCKET, SO_REUSEPORT, 1)
                }
                if address.family == AF_INET6 {
                    try Syscalls.setOption(descriptor, level: Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1)
                }
            }
            try Syscalls.bind(descriptor, address)
            try Syscalls.listen(descriptor, backlog: 4096)
            self.address = try Syscalls.localAddress(descriptor)
        } catch {
            Syscalls.close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        ownPath = Mutex(unixPath)
    }

    /// Takes over a descriptor that somebody else has bound, such as a service manager. Its address
    /// stays theirs: a socket file is not removed in the end.
    ///
    /// - Throws: `invalidArgument` when it is no stream socket that listens, or what the kernel says
    ///   about it. It stays open then.
    public init(inherited descriptor: Int32) throws(Errno) {
        guard try Syscalls.isListeningStream(descriptor) else { throw .invalidArgument }
        try Syscalls.setUpInherited(descriptor)
        address = try Syscalls.localAddress(descriptor)
        self.descriptor = descriptor
        ownPath = Mutex(nil)
    }

    /// The number by which another process inherits it.
    public var number: Int32 { descriptor }

    /// The socket file goes when this object does: it is this process's from now on.
    public func own(_ path: String) {
        ownPath.withLock { $0 = path }
    }

    /// The socket file is another process's from now on, and stays.
    public func disown() {
        ownPath.withLock { $0 = nil }
    }

    deinit {
        Syscalls.close(descriptor)
        if let path = ownPath.withLock({ $0 }) { try? Syscalls.unlink(path) }
    }
}

/// Accepts connections of one listening descriptor on one loop.
public final class ListeningSocket {
    private let listening: ListeningDescriptor
    private let registration: Registration
    private var isOpen = true

    /// Watches a descriptor for one loop; `waiter` is woken when connections wait.
    ///
    /// - Throws: what epoll_ctl(2) says.
    public init(_ listening: ListeningDescriptor, loop: EventLoop, waiter: Waiter) throws(Errno) {
        self.listening = listening
        registration = Registration(descriptor: listening.descriptor, loop: loop)
        registration.waiter = waiter
        // Exclusive, so that one connection on a shared descriptor does not wake every loop.
        // Edge-triggered, so that a backlog which cannot be accepted (no descriptors left) does not
        // keep the loop spinning.
        do throws(Errno) {
            try loop.register(
                registration,
                events: CPlatform_EPOLLIN | CPlatform_EPOLLEXCLUSIVE | CPlatform_EPOLLET)
        } catch {
            // The loop does not know the registration: there is nothing to take back.
            isOpen = false
            throw error
        }
    }

    deinit {
        close()
    }

    /// Accepts one connection; nil when none waits. Call it until nil before sleeping on the
    /// waiter.
    ///
    /// - Throws: the kernel's error. `tooManyOpenFiles` and its like mean: wait, then try again.
    public func accept() throws(Errno) -> (socket: Socket, peer: SocketAddress)? {
        var peer = SocketAddress()
        guard let descriptor = try acceptDescriptor(&peer) else { return nil }
        let socket = try Socket(owning: descriptor, loop: registration.loop)
        if !peer.isLocal { socket.disableDelay() }
        return (socket, peer)
    }

    private func acceptDescriptor(_ peer: inout SocketAddress) throws(Errno) -> Int32? {
        while true {
            do throws(Errno) {
                return try Syscalls.accept(registration.descriptor, &peer)
            } catch {
                if error == .wouldBlock { return nil }
                // One that is gone says nothing about those behind it, which raise no edge of their
                // own.
                if !error.isOfAcceptedConnection { throw error }
            }
        }
    }

    /// Stops accepting on this loop; the descriptor stays open for the others.
    public func close() {
        if !isOpen { return }
        isOpen = false
        registration.waiter = nil
        registration.loop.unregister(registration)
        registration.loop.removeFromPoll(registration)
    }
}
