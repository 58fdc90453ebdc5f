public import Reactor

/// Writing of message heads and chunks. Nothing is checked here: whoever calls passes names and
/// values that a parser of this module accepted, or literals.
extension ByteBuffer {
    /// Appends `HTTP/1.1 404 Not Found` and CRLF (RFC 9112, section 4).
    ///
    /// - Parameter status: 100 to 599.
    @inline(__always)
    public func appendStatusLine(_ status: UInt16) {
        append("HTTP/1.1 ")
        append(decimal: UInt64(status))
        append(0x20)
        append(reasonPhrase(of: status))
        appendLineEnd()
    }

    /// Appends a status line with the reason that came from a backend.
    public func appendStatusLine(_ status: UInt16, reason: Span<UInt8>) {
        append("HTTP/1.1 ")
        append(decimal: UInt64(status))
        append(0x20)
        append(reason)
        appendLineEnd()
    }

    /// Appends a field line as it came.
    @inline(__always)
    public func appendField(_ name: Span<UInt8>, _ value: Span<UInt8>) {
        let count = name.count + value.count + 4
        reserve(count)
        // Safe: `reserve` made room for `count` bytes, and the four parts are as many. The spans are
        // not this buffer's own.
        _ = appendUnsafe { free in
            name.withUnsafeBytes { free.copyMemory(from: $0) }
            free[name.count] = UInt8(ascii: ":")
            free[name.count + 1] = UInt8(ascii: " ")
            let rest = UnsafeMutableRawBufferPointer(rebasing: free[(name.count + 2)...])
            value.withUnsafeBytes { rest.copyMemory(from: $0) }
            rest[value.count] = UInt8(ascii: "\r")
            rest[value.count + 1] = UInt8(ascii: "\n")
            return count
        }
    }

    /// Appends a field line of the proxy's own.
    ///
    /// - Parameter name: The name alone, without colon.
    @inline(__always)
    public func appendField(_ name: StaticString, _ value: Span<UInt8>) {
        append(name)
        append(": ")
        append(value)
        appendLineEnd()
    }

    /// Appends a field line of the proxy's own.
    @inline(__always)
    public func appendField(_ name: StaticString, _ value: StaticString) {
        append(name)
        append(": ")
        append(value)
        appendLineEnd()
    }

    /// Appends a field line whose value is a number, as `Content-Length`.
    @inline(__always)
    public func appendField(_ name: StaticString, decimal value: UInt64) {
        append(name)
        append(": ")
        append(decimal: value)
        appendLineEnd()
    }

    /// Appends CRLF: the end of a line, or of a head.
    @inline(__always)
    public func appendLineEnd() {
        append("\r\n")
    }

    /// Appends the size line of a chunk (RFC 9112, section 7.1). The content and CRLF follow.
    ///
    /// - Parameter count: Bytes of content, at least 1: a chunk of none would end the body.
    public func appendChunkHeader(_ count: Int) {
        precondition(count > 0, "an empty chunk ends the body")
        var shift = (Int.bitWidth - 1 - count.leadingZeroBitCount) / 4 * 4
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: count >> shift & 0xF)
            append(digit < 10 ? digit + 0x30 : digit + 0x57)
            shift -= 4
        }
        appendLineEnd()
    }

    /// Appends the last chunk, the trailer fields, and the blank line that ends a chunked body.
    public func appendLastChunk(trailers: [(name: [UInt8], value: [UInt8])] = []) {
        append("0\r\n")
        for field in trailers { appendField(field.name.span, field.value.span) }
        appendLineEnd()
    }
}
