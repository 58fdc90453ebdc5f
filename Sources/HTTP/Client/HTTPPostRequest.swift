public import Reactor

/// A POST that a pool is to make.
public struct HTTPPostRequest: Sendable {
    /// Path and query, visible ASCII; the host is the pool's.
    public var target: String
    /// Fields beyond the pool's own. Their values are never logged.
    public var fields: [(name: String, value: String)] = []
    /// Media type of the content (RFC 9110, section 8.3).
    public var contentType: StaticString
    /// The content.
    public var body: [UInt8]
    /// When the whole exchange must have ended.
    public var deadline: MonotonicInstant
    /// A longer content of the answer is an error.
    public var maximumBodyBytes = 64 << 10

    public init(
        _ target: String, contentType: StaticString, body: [UInt8], deadline: MonotonicInstant
    ) {
        self.target = target
        self.contentType = contentType
        self.body = body
        self.deadline = deadline
    }
}
