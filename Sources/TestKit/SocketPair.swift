public import Reactor

/// Two ends of one connection, both on the caller's loop and with one waiter: a test that tries
/// everything that can move and then waits needs no second task.
public struct SocketPair {
    public let near: Socket
    public let far: Socket

    /// Connects over loopback.
    ///
    /// - Throws: `Errno` when the machine gives no socket.
    public static func connect(loop: EventLoop, waiter: Waiter) async throws -> SocketPair {
        guard let any = SocketAddress(literal: "127.0.0.1", port: 0) else {
            throw Errno.invalidArgument
        }
        let listening = try ListeningDescriptor(any, isShared: false)
        let listener = try ListeningSocket(listening, loop: loop, waiter: waiter)
        let near = try Socket.connect(to: listening.address, loop: loop)
        near.waiter = waiter
        var far: Socket?
        while far == nil || near.connectResult() == nil {
            if let accepted = try listener.accept() { far = accepted.socket }
            if far == nil || near.connectResult() == nil { _ = await waiter.wait() }
        }
        listener.close()
        guard let far else { throw Errno.invalidArgument }
        far.waiter = waiter
        return SocketPair(near: near, far: far)
    }
}
