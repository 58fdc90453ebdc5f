internal import Reactor
internal import Synchronization

/// Tells operators what goes wrong, once and then now and again, and when it is over.
final class GoogleNotices: Sendable {
    /// What can go wrong. Each has its own place, so that one does not hide another.
    enum Subject: Hashable, Sendable {
        case accessToken, keyFile, permission, token, service
    }

    private static let silence: Duration = .seconds(300)
    private let said = Mutex<[Subject: MonotonicInstant]>([:])
    private let events: @Sendable (StoreEvent) -> Void

    /// - Parameter events: Called on any thread.
    init(events: @escaping @Sendable (StoreEvent) -> Void) {
        self.events = events
    }

    /// Something failed.
    func failed(
        _ subject: Subject, _ message: String, _ fields: [(name: String, value: String)]
    ) {
        let now = MonotonicInstant.now
        let isNews = said.withLock { said in
            if let last = said[subject], now < last.advanced(by: Self.silence) { return false }
            said[subject] = now
            return true
        }
        if isNews { events(StoreEvent(.error, message, fields)) }
    }

    /// It works.
    func recovered(_ subject: Subject, _ message: String) {
        if said.withLock({ $0.removeValue(forKey: subject) }) != nil {
            events(StoreEvent(.info, message))
        }
    }
}
