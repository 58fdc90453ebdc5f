/// Decides when load is shed for want of memory: above nine tenths of the limit, until less than
/// eight tenths are taken. In between nothing changes, or load would come and go by the second.
public struct MemoryGovernor: Sendable {
    /// Bytes.
    public let limit: UInt64
    /// Load is being shed.
    public private(set) var isShedding = false

    public init(limit: UInt64) {
        self.limit = limit
    }

    /// From here on load is shed, and below `lowMark` no more; bytes.
    public var highMark: UInt64 { limit / 10 &* 9 }
    public var lowMark: UInt64 { limit / 10 &* 8 }

    /// Takes a reading into account.
    ///
    /// - Returns: whether that begins or ends the shedding of load.
    public mutating func note(used: UInt64) -> Bool {
        let next = isShedding ? used >= lowMark : used >= highMark
        defer { isShedding = next }
        return next != isShedding
    }
}

/// What is known about the memory of the process, for `/readyz` and the metrics.
public struct MemoryStatus: Sendable, Equatable {
    /// Bytes that count against the limit.
    public var used: UInt64
    /// Bytes; nil without a limit.
    public var limit: UInt64?
    /// Load is being shed.
    public var isShedding: Bool

    public init(used: UInt64, limit: UInt64?, isShedding: Bool) {
        self.used = used
        self.limit = limit
        self.isShedding = isShedding
    }
}
