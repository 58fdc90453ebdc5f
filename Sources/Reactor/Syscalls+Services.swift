internal import CPlatform
internal import Glibc

/// What passes between a process and the service manager that started it.
extension Syscalls {
    /// getpid(2).
    public static func processIdentifier() -> Int32 {
        getpid()
    }

    /// isatty(3).
    public static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// getenv(3); nil when there is no such variable.
    public static func environmentVariable(_ name: String) -> String? {
        guard let value = getenv(name) else { return nil }
        return String(cString: value)
    }

    /// socket(2), connect(2) and send(2) of one datagram to a local socket.
    ///
    /// - Parameter patience: How long to wait for room in the receiver's queue, milliseconds.
    /// - Throws: `wouldBlock` when there was none, or what the kernel says.
    public static func sendDatagram(
        _ bytes: UnsafeRawBufferPointer, to address: SocketAddress, patience: Int32
    ) throws(Errno) {
        let kind = SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        let descriptor = try checked(.socket) { Glibc.socket(AF_UNIX, Int32(kind), 0) }
        defer { close(descriptor) }
        // Connected, because only then poll(2) knows whose queue is meant.
        try connect(descriptor, address)
        do throws(Errno) {
            _ = try send(descriptor, bytes)
        } catch .wouldBlock {
            waitWritable(descriptor, milliseconds: patience)
            _ = try send(descriptor, bytes)
        }
    }

    /// getsockopt(2), SO_TYPE and SO_ACCEPTCONN: whether a descriptor is a stream socket that
    /// listens.
    ///
    /// - Throws: what the kernel says where it is no socket at all.
    static func isListeningStream(_ descriptor: Int32) throws(Errno) -> Bool {
        let kind = try option(descriptor, SO_TYPE)
        let isListening = try option(descriptor, SO_ACCEPTCONN) != 0
        return kind == Int32(SOCK_STREAM.rawValue) && isListening
    }

    /// fcntl(2): non-blocking and close-on-exec, as every descriptor that the program opens itself.
    static func setUpInherited(_ descriptor: Int32) throws(Errno) {
        let flags = try checked(.setOption(descriptor)) { fcntl(descriptor, F_GETFL) }
        _ = try checked(.setOption(descriptor)) { fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) }
        _ = try checked(.setOption(descriptor)) { fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    }

    private static func option(_ descriptor: Int32, _ option: Int32) throws(Errno) -> Int32 {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        _ = try checked(.setOption(descriptor)) {
            getsockopt(descriptor, SOL_SOCKET, option, &value, &length)
        }
        return value
    }
}
