/// What a head may measure; beyond it the message is refused and the connection closed.
public struct HeadLimits: Sendable, Equatable {
    /// Bytes of a whole head. 1 KiB to 1 MiB.
    public var bytes: Int
    /// Field lines. 1 to 1,000.
    public var fields: Int
    /// Bytes of a request target.
    public var target: Int

    /// The defaults are those of a listener.
    public init(bytes: Int = 32 << 10, fields: Int = 100, target: Int = 8 << 10) {
        self.bytes = bytes
        self.fields = fields
        self.target = target
    }
}
