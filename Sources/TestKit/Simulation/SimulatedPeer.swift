#if DEBUG
    /// Whoever is at the far end of a simulated connection. Called between two calls of the proxy into
    /// the kernel, and never by one that it makes itself.
    public protocol SimulatedPeer: AnyObject {
        /// Bytes of the proxy have come.
        func received(_ bytes: [UInt8], on stream: SimulatedStream)
        /// The proxy sends nothing more.
        func finished(_ stream: SimulatedStream)
        /// The connection is gone; what was on its way may be lost.
        func reset(_ stream: SimulatedStream)
    }
#endif
