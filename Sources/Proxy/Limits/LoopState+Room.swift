internal import Attestation
internal import Configuration
internal import Policy
internal import Reactor

/// Room for client connections: who gets in, and who has to go when there is none.
extension LoopState {
    /// Connections that are closed at once to make room, and how often that is looked for: a look
    /// goes through all connections of the loop.
    private static let roomStep = 64
    private static let lookInterval = Duration.milliseconds(5)
    /// A connection that was used more lately is not idle, but between two requests.
    private static let leastIdleTime = Duration.seconds(1)

    /// Counts a connection that was accepted. Where there is no room, those that have been idle for
    /// longest have to go: a client that says nothing for a second can connect again, and a flood of
    /// silent connections keeps nobody out.
    ///
    /// - Parameter network: Whose it is; nil where that is not known, or not one client.
    /// - Returns: the limit that is in the way; nil when it may stay.
    func admit(_ listener: ServedListener, network: IPAddress?) -> Limit? {
        if isShedding { return .memoryLimit }
        guard ledger.enter() || makeRoom(of: nil) && ledger.enter() else { return .maxConnections }
        var refusal = listener.enter(network)
        if refusal == .connections && makeRoom(of: listener.ledger) {
            refusal = listener.enter(network)
        }
        if refusal != nil { ledger.leave() }
        return refusal
    }

    /// Gives the place of a connection up.
    func leave(_ listener: ServedListener, _ place: ConnectionPlace) {
        ledger.leave()
        listener.ledger.leave(network: place.network)
    }

    /// Closes the connections of this loop that have been idle for longest, on one listener or on
    /// all of them.
    ///
    /// - Returns: whether there is room now.
    func makeRoom(of listener: ListenerLedger?) -> Bool {
        if loop.now < looksForRoomAt { return false }
        looksForRoomAt = loop.now.advanced(by: Self.lookInterval)
        let idle = longestIdle(Self.roomStep) { listener == nil || $0.listener.ledger === listener }
        var hasRoom = false
        for connection in idle {
            recorder.connection(.dismissed, listener: connection.listener.name)
            if connection.dismiss() { hasRoom = true }
        }
        return hasRoom
    }

    /// At most `count` idle connections, the one first that has been idle for longest.
    private func longestIdle(
        _ count: Int, where isWanted: (ClientConnection) -> Bool
    ) -> [ClientConnection] {
        let since = loop.now.advanced(by: .zero - Self.leastIdleTime)
        var found: [ClientConnection] = []
        for connection in openConnections {
            guard let idleSince = connection.idleTime, idleSince <= since, isWanted(connection)
            else { continue }
            if found.count == count, let last = found.last?.idleTime, last <= idleSince { continue }
            let place = found.firstIndex { ($0.idleTime ?? .never) > idleSince } ?? found.count
            found.insert(connection, at: place)
            if found.count > count { found.removeLast() }
        }
        return found
    }

    // MARK: Shedding load

    /// Takes no requests and no connections for want of memory, and gives back what it can; or goes
    /// on.
    func shed(_ isShedding: Bool) {
        if isShedding == self.isShedding { return }
        self.isShedding = isShedding
        if !isShedding { return }
        tokens.removeAll()
        releaseSpareExchanges()
        for connection in Array(openConnections) {
            if connection.idleTime != nil {
                recorder.connection(.dismissed, listener: connection.listener.name)
            }
            _ = connection.dismiss()
        }
    }
}

/// What a connection was counted as.
struct ConnectionPlace {
    /// Whose connection it is; nil when no network's.
    let network: IPAddress?
}
