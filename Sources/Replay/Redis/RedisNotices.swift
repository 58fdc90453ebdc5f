internal import Reactor
internal import Synchronization

/// Tells operators of each trouble once, although every loop sees it, and again when it lasts.
final class RedisNotices: Sendable {
    private static let interval = Duration.seconds(60)

    private struct Said {
        var kind: StoreFailure
        var next: MonotonicInstant
    }

    private struct State {
        var failures: [String: Said] = [:]
        var connected: Set<String> = []
        var remarks: [String: MonotonicInstant] = [:]
    }

    private let events: @Sendable (StoreEvent) -> Void
    private let state = Mutex(State())

    init(_ events: @escaping @Sendable (StoreEvent) -> Void) {
        self.events = events
    }

    /// A server cannot be used.
    func failed(_ server: String, _ failure: RedisFailure) {
        let now = MonotonicInstant.now
        let isNews = state.withLock { state in
            state.connected.remove(server)
            if let said = state.failures[server], said.kind == failure.kind, now < said.next {
                return false
            }
            state.failures[server] = Said(
                kind: failure.kind, next: now.advanced(by: Self.interval))
            return true
        }
        if !isNews { return }
        var fields = [
            ("server", server), ("failure", failure.kind.rawValue), ("error", failure.reason),
        ]
        if let hint = failure.hint { fields.append(("hint", hint)) }
        events(StoreEvent(.error, "the replay store cannot use a Redis server", fields))
    }

    /// A server can be used.
    func connected(_ server: String, address: RedisAddress? = nil) {
        let isNews = state.withLock { state in
            state.failures[server] = nil
            return state.connected.insert(server).inserted
        }
        if !isNews { return }
        var fields = [("server", server)]
        if let address, address.description != server {
            fields.append(("address", address.description))
        }
        events(StoreEvent(.info, "the replay store is connected to a Redis server", fields))
    }

    /// Something else that operators should know, at most once in a while for each message and
    /// server.
    func remark(
        _ severity: StoreEvent.Severity, _ message: String, server: String,
        _ fields: [(name: String, value: String)] = []
    ) {
        let now = MonotonicInstant.now
        let topic = "\(server) \(message) \(fields.first?.value ?? "")"
        let isNews = state.withLock { state in
            if let next = state.remarks[topic], now < next { return false }
            // Words of a server are in the topics: they must not fill the memory.
            if state.remarks.count >= 256 { state.remarks.removeAll() }
            state.remarks[topic] = now.advanced(by: Self.interval)
            return true
        }
        if isNews { events(StoreEvent(severity, message, [("server", server)] + fields)) }
    }
}
