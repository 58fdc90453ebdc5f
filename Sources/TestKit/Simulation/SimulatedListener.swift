#if DEBUG
    /// Whoever listens on a simulated network.
    public protocol SimulatedListener: AnyObject {
        /// The proxy connects.
        func admits(_ stream: SimulatedStream) -> SimulatedAdmission
    }

    /// What becomes of a connection that the proxy makes.
    public enum SimulatedAdmission: Sendable {
        case accepted
        /// Nobody listens.
        case refused
        /// No answer, ever.
        case ignored
    }
#endif
