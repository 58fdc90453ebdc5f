public import Replay

/// What is known about the claim store: for metrics.
public struct ClaimStoreStatus: Sendable {
    /// The store's word in the configuration.
    public var name: StaticString
    public var statistics: StoreStatistics

    /// The store as it is now.
    public init(_ store: any ClaimStore) {
        name = store.name
        statistics = store.statistics
    }
}
