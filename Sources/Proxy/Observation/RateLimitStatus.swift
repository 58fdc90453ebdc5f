/// What the tables of the limits hold, for the metrics.
public struct RateLimitStatus: Sendable {
    /// One table.
    public struct Table: Sendable {
        /// Clients that have a bucket.
        public let entries: Int
        /// How many may have one.
        public let entryLimit: Int
        /// Charges that took from a bucket that clients share, as the table was full.
        public let sharedCharges: UInt64

        public init(entries: Int, entryLimit: Int, sharedCharges: UInt64) {
            self.entries = entries
            self.entryLimit = entryLimit
            self.sharedCharges = sharedCharges
        }

        init(_ table: BucketTable) {
            self.init(
                entries: table.entries, entryLimit: table.maxEntries,
                sharedCharges: table.sharedCharges)
        }
    }

    /// By name of the route, in the order of the configuration.
    public let routes: [(name: String, table: Table)]
    /// Of the limit on verifications; nil where there is none.
    public let verifications: Table?

    public init(routes: [(name: String, table: Table)] = [], verifications: Table? = nil) {
        self.routes = routes
        self.verifications = verifications
    }
}
