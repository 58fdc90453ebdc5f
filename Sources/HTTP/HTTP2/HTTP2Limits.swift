/// What one HTTP/2 connection may cost us.
public struct HTTP2Limits: Sendable, Equatable {
    /// Streams that the peer may have open at once (SETTINGS_MAX_CONCURRENT_STREAMS).
    public var concurrentStreams: UInt32 = 128
    /// Bytes of a message's content that wait to be taken, for each stream: what a stalled reader
    /// costs (RFC 9113, section 5.2). 65,535 to 2^31 - 1.
    public var streamWindow: Int32 = 128 << 10
    /// The same for all streams of the connection together.
    public var connectionWindow: Int32 = 1 << 20
    /// Bytes of content that wait to be sent, for each stream.
    public var outgoingBytes = 32 << 10
    /// What a head may be, as on HTTP/1.1: one that is longer is given to the parser as far as it
    /// takes to be refused there.
    public var head = HeadLimits()
    /// Frames that move nothing (PING, SETTINGS, PRIORITY, empty DATA …) in a row; they come back at
    /// `idleFramesPerSecond`, and one with each frame of content. Beyond that the connection ends
    /// (pitfall W9). Streams that are reset count for themselves: as many in a row, and one more for
    /// each stream that comes to its end.
    public var idleFrames = 1000
    /// See `idleFrames`.
    public var idleFramesPerSecond = 50

    public init() {}

    /// The limits of connections that we opened: one slow stream of many clients' must not stall the
    /// others, so the connection as a whole has no window of its own.
    public static var upstream: HTTP2Limits {
        var limits = HTTP2Limits()
        limits.connectionWindow = .max
        limits.head = HeadLimits(bytes: 64 << 10, fields: 256)
        return limits
    }
}
