public import Proxy
internal import Synchronization

/// What was read last about the memory of the process, for all who ask.
public final class MemoryReport: Sendable {
    private let latest = Mutex(MemoryStatus(used: 0, limit: nil, isShedding: false))

    public init() {}

    /// A reading was taken.
    public func note(_ status: MemoryStatus) {
        latest.withLock { $0 = status }
    }

    /// The latest reading.
    public var status: MemoryStatus { latest.withLock { $0 } }
}
