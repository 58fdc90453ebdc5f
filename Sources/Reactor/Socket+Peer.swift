internal import CPlatform

extension Socket {
    /// The process at the other end of a local socket when it connected, for a log: "uid 0 pid 4711";
    /// nil for other sockets.
    public var peerProcess: String? {
        var (user, process): (UInt32, Int32) = (0, 0)
        guard CPlatform_peer_process(descriptor, &user, &process) == 0 else { return nil }
        return "uid \(user) pid \(process)"
    }
}

extension SocketAddress {
    /// Whether only this machine reaches it by a network: 127.0.0.0/8 or ::1. A local socket is not
    /// reached by any.
    public var isLoopback: Bool {
        let bytes = ipBytes
        if bytes.count == 4 { return bytes[0] == 127 }
        return bytes.count == 16 && bytes[15] == 1 && bytes.dropLast().allSatisfy { $0 == 0 }
    }
}
