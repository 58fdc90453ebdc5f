internal import CPlatform
internal import Glibc

/// Connections and what passes over them.
extension Syscalls {
    /// socket(2), non-blocking and close-on-exec.
    static func socket(family: Int32) throws(Errno) -> Int32 {
        try checked(.socket) { CPlatform_socket(family) }
    }

    /// accept4(2), non-blocking and close-on-exec.
    static func accept(_ descriptor: Int32, _ peer: inout SocketAddress) throws(Errno) -> Int32 {
        var accepted: SocketAddress?
        let connection = try checked(
            .accept(descriptor),
            takeAnswer: { if case .accepted(_, let address) = $0 { accepted = address } }
        ) {
            peer.withUnsafeMutableStorage { address, length in
                CPlatform_accept(descriptor, address, length)
            }
        }
        if let accepted { peer = accepted }
        return connection
    }

    /// bind(2).
    static func bind(_ descriptor: Int32, _ address: SocketAddress) throws(Errno) {
        _ = try checked(.bind(descriptor, address)) {
            address.withUnsafeStorage { CPlatform_bind(descriptor, $0, $1) }
        }
    }

    /// listen(2).
    static func listen(_ descriptor: Int32, backlog: Int32) throws(Errno) {
        _ = try checked(.listen(descriptor)) { Glibc.listen(descriptor, backlog) }
    }

    /// connect(2). `inProgress` is thrown for a connection that is under way.
    static func connect(_ descriptor: Int32, _ address: SocketAddress) throws(Errno) {
        _ = try checked(.connect(descriptor, address)) {
            address.withUnsafeStorage { CPlatform_connect(descriptor, $0, $1) }
        }
    }

    /// getsockname(2).
    static func localAddress(_ descriptor: Int32) throws(Errno) -> SocketAddress {
        var address = SocketAddress()
        var answered: SocketAddress?
        _ = try checked(
            .localAddress(descriptor),
            takeAnswer: { if case .address(let address) = $0 { answered = address } }
        ) {
            address.withUnsafeMutableStorage { CPlatform_getsockname(descriptor, $0, $1) }
        }
        return answered ?? address
    }

    /// setsockopt(2) with an integer.
    static func setOption(_ descriptor: Int32, level: Int32, _ option: Int32, _ value: Int32)
        throws(Errno)
    {
        var value = value
        _ = try checked(.setOption(descriptor)) {
            setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
        }
    }

    /// getsockopt(2), SO_ERROR: how an asynchronous connect ended.
    static func pendingError(_ descriptor: Int32) -> Errno? {
        if let answer = answer(.pendingError(descriptor)) {
            guard case .failure(let error) = answer else { return nil }
            return error
        }
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        if getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &value, &length) == -1 {
            return Errno(rawValue: Glibc.errno)
        }
        return value == 0 ? nil : Errno(rawValue: value)
    }

    /// setsockopt(2), SO_LINGER with no time: close(2) then resets the connection.
    static func setLinger(_ descriptor: Int32) {
        if answer(.resetOnClose(descriptor)) != nil { return }
        var value = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(
            descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// shutdown(2) of both sides.
    static func shutdown(_ descriptor: Int32) {
        if answer(.shutdown(descriptor)) != nil { return }
        _ = CPlatform_shutdown(descriptor)
    }

    /// shutdown(2) of the sending side.
    static func shutdownWrite(_ descriptor: Int32) {
        if answer(.shutdownWrite(descriptor)) != nil { return }
        _ = CPlatform_shutdown_write(descriptor)
    }

    // MARK: Bytes

    /// recv(2).
    public static func receive(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer)
        throws(Errno) -> Int
    {
        try checked(.receive(descriptor, bytes)) {
            CPlatform_receive(descriptor, bytes.baseAddress, bytes.count)
        }
    }

    /// recv(2), MSG_PEEK: what is there stays there.
    static func peek(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer) throws(Errno)
        -> Int
    {
        try checked(.peek(descriptor, bytes)) {
            CPlatform_peek(descriptor, bytes.baseAddress, bytes.count)
        }
    }

    /// send(2), without SIGPIPE.
    public static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer)
        throws(Errno) -> Int
    {
        try checked(.send(descriptor, bytes, UnsafeRawBufferPointer(start: nil, count: 0))) {
            CPlatform_send(descriptor, bytes.baseAddress, bytes.count)
        }
    }

    /// sendmsg(2) with two runs of bytes, without SIGPIPE.
    public static func send(
        _ descriptor: Int32, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
    ) throws(Errno) -> Int {
        try checked(.send(descriptor, first, second)) {
            CPlatform_send2(
                descriptor, first.baseAddress, first.count, second.baseAddress, second.count)
        }
    }
}
