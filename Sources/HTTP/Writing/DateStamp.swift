public import Reactor

/// The `Date` field (RFC 9110, section 6.6.1), made once a second and copied for the rest of it.
/// One per event loop.
public struct DateStamp: Sendable {
    private var second: Int64?
    private var line: [UInt8] = []

    public init() {}

    /// Appends a `Date` line.
    ///
    /// - Parameter unixSeconds: Seconds since 1970; see `HTTPDate` for its range.
    @inline(__always)
    public mutating func appendField(to buffer: ByteBuffer, unixSeconds: Int64) {
        if unixSeconds != second { write(unixSeconds) }
        buffer.append(line.span)
    }

    private mutating func write(_ unixSeconds: Int64) {
        second = unixSeconds
        line = Array("Date: \(HTTPDate(seconds: unixSeconds))\r\n".utf8)
    }
}
