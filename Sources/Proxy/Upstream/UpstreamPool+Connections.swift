internal import Configuration
internal import HTTP
internal import Reactor

/// The connections to a chosen server: those that lie idle, and those that requests share.
extension UpstreamPool {
    /// A connection that lay idle for longer, or that may have something to read, is asked whether
    /// it still stands before it is used: what came unasked would be taken for the next answer
    /// (pitfall W10).
    private static let suspicionNanoseconds: Int64 = 250_000_000

    // MARK: Idle connections

    /// The connection that was used last, when one lies idle and still stands.
    func takeIdle(_ index: Int, now: MonotonicInstant) -> (any Transport)? {
        let server = servers[index]
        for connection in server.shared {
            if let stream = connection.openStream() { return stream }
        }
        while let connection = server.idle.popLast() {
            let socket = connection.socket
            if socket.isPeerClosed || socket.isBroken { continue }
            let isOld = now > connection.since.advanced(byNanoseconds: Self.suspicionNanoseconds)
            if (isOld || socket.isReadable) && !socket.isQuiet() { continue }
            return socket
        }
        return nil
    }

    /// Keeps a connection whose last answer was complete and whose every byte was read.
    func keep(_ socket: any Transport, _ index: Int, now: MonotonicInstant) {
        let server = servers[index]
        socket.waiter = nil
        if server.keepsNothing || server.idle.count >= upstream.idleConnections
            || socket.isPeerClosed
        {
            socket.close()
            return
        }
        server.idle.append(.init(socket: socket, since: now))
    }

    /// Closes connections that lay idle too long or that the server closed.
    func sweep(now: MonotonicInstant) {
        for server in servers {
            server.idle.removeAll { connection in
                let isOver =
                    connection.socket.isPeerClosed
                    || now > connection.since.advanced(byNanoseconds: idleNanoseconds)
                if isOver { connection.socket.close() }
                return isOver
            }
        }
    }

    /// Closes all that lies idle and keeps nothing more: the upstream left the configuration.
    ///
    /// - Parameter kept: Servers that another pool goes on with.
    func retire(except kept: [UpstreamServer] = []) {
        for server in servers where !kept.contains(where: { $0 === server }) { server.retire() }
    }

    // MARK: Shared connections

    /// Whether another request is opening a connection that this one can share. One that is opening
    /// it says `finishConnecting` when it knows how that went.
    ///
    /// - Parameter waiter: Is woken then.
    func joinConnecting(_ index: Int, _ waiter: Waiter) -> Bool {
        if !isMultiplexed { return false }
        if servers[index].isConnecting || servers[index].shared.contains(where: \.isGreeting) {
            awaitGreeting(index, waiter)
            return true
        }
        servers[index].isConnecting = true
        return false
    }

    /// Wakes `waiter` when something is heard of a shared connection that is not known yet.
    func awaitGreeting(_ index: Int, _ waiter: Waiter) {
        if servers[index].waiting.contains(where: { $0 === waiter }) { return }
        servers[index].waiting.append(waiter)
    }

    /// The attempt to open a shared connection is over.
    func finishConnecting(_ index: Int) {
        servers[index].isConnecting = false
        servers[index].wakeWaiting()
    }

    /// Shares a fresh connection, and opens its first stream.
    func share(_ transport: any Transport, _ index: Int, _ state: LoopState) -> HTTP2Stream? {
        let server = servers[index]
        let connection = HTTP2UpstreamConnection(
            transport, idleNanoseconds: idleNanoseconds, patience: connectNanoseconds, state: state,
            onGreeting: { server.wakeWaiting() },
            onEnd: { ended in
                server.shared.removeAll { $0 === ended }
                server.wakeWaiting()
            })
        guard let connection else { return nil }
        server.shared.append(connection)
        let stream = connection.openStream()
        // Who is served now may have been given to a server that is not there any more.
        if server.keepsNothing { connection.retire() }
        return stream
    }
}
