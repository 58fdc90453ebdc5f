#if DEBUG
    /// How often the kernel and the network do what they seldom do: once in so many calls; 0 is never.
    public struct SimulatedFaults: Sendable {
        public var interruptions = 40
        public var spuriousBlocks = 60
        public var shortTransfers = 12
        public var resets = 1500
        public var abortedAccepts = 40
        public var exhaustions = 400
        public var watchFailures = 400
        /// There are no descriptors left now, whatever else is set.
        public var isExhausted = false

        public init() {}
    }
#endif
