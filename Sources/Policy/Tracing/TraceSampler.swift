/// Decides which traces that begin here are recorded. A trace that goes on is recorded if its caller
/// does that (the parent-based sampler of OpenTelemetry).
public struct TraceSampler: Sendable, Equatable {
    /// The share of new traces, from 0 to 1.
    public let share: Double
    /// A trace is recorded when the low half of its name is below.
    private let bound: UInt64

    public init(share: Double) {
        self.share = share
        // The largest Double below 1 times 2^64 still fits.
        bound = share >= 1 ? .max : share <= 0 ? 0 : UInt64(share * 0x1p64)
    }

    /// Whether a trace that begins here is recorded. Another proxy with the same share says the
    /// same of the same trace.
    public func includes(_ trace: TraceID) -> Bool {
        trace.low < bound || share >= 1
    }
}
