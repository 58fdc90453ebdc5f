internal import Proxy
internal import Reactor
internal import Synchronization

/// The keys that every loop has. A key set that was fetched but not yet handed out verifies
/// nothing, so a process is not ready by it.
final class HandedOutKeys: Sendable {
    private let latest = Mutex<KeySnapshot?>(nil)

    /// Every loop has these keys, or newer ones.
    func note(_ keys: KeySnapshot) {
        latest.withLock { latest in
            if let known = latest, known.change > keys.change { return }
            latest = keys
        }
    }

    /// The status of each project's keys, usable only when the loops can use them too.
    func confirm(_ statuses: [KeySetStatus], at now: MonotonicInstant) -> [KeySetStatus] {
        let sets = latest.withLock { $0?.sets } ?? []
        return statuses.map { status in
            var status = status
            let keys = sets.first { $0.project == status.project }
            if keys?.usable(at: now) == nil { status.isUsable = false }
            return status
        }
    }
}
