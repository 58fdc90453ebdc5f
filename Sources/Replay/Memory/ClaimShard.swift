internal import Synchronization

/// A part of a memory store's claims behind a lock of its own, so that loops rarely meet.
final class ClaimShard: Sendable {
    /// What one takes beside its slots: this object, the array's header, its place in the list.
    static let overheadBytes = 128

    let table = Mutex(ClaimTable())
}
