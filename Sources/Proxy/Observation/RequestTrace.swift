public import Policy

/// A request's place in a distributed trace.
public struct RequestTrace: Sendable {
    public var traceID: TraceID
    /// The caller's span; nil where the trace begins here.
    public var parentID: UInt64?
    /// The span of the request.
    public var spanID: UInt64
    /// The span of asking the upstream, the parent of what the backend does; the request's own where
    /// the trace is not recorded.
    public var upstreamSpanID: UInt64
    /// Spans are sent to the collector.
    public var isSampled: Bool
    /// The caller's `tracestate` may go on.
    public var keepsState = false
    /// The request came by https, perhaps as far as a load balancer in front.
    public var isEncrypted = false
    /// Microseconds from the first byte of the request to the choice of a server.
    public var upstreamStart: Int64 = 0
    /// How often the request was sent again or moved on.
    public var resendCount = 0

    public init(traceID: TraceID, parentID: UInt64?, spanID: UInt64, isSampled: Bool) {
        self.traceID = traceID
        self.parentID = parentID
        self.spanID = spanID
        upstreamSpanID = spanID
        self.isSampled = isSampled
    }
}
