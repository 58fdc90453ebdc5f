/// What `Content-Length` and `Transfer-Encoding` say about a body, with every ambiguity refused
/// (RFC 9112, section 6; pitfalls W1, W4, W10).
enum DeclaredFraming: Sendable, Equatable {
    case absent
    case length(UInt64)
    case chunked

    /// Lengths beyond this turn negative in somebody's signed arithmetic.
    private static let lengthAllowed = UInt64(Int64.max)

    /// - Throws: `contentLength`, `transferEncoding`: a repeated field, both fields, an HTTP/1.0
    ///   transfer coding, a coding other than exactly `chunked`, a length that is not only digits.
    @inline(__always)
    init(
        _ bytes: Span<UInt8>, fields: borrowing FieldSection, version: Version
    ) throws(MalformedMessage) {
        if fields.contains(.transferEncoding) {
            guard version == .http11, !fields.contains(.contentLength),
                fields.count(of: .transferEncoding) == 1,
                let line = fields.first(.transferEncoding),
                bytes.isPlainlyWritten(line), bytes.slice(line.value).equals("chunked")
            else { throw MalformedMessage(.transferEncoding) }
            self = .chunked
        } else if fields.contains(.contentLength) {
            guard fields.count(of: .contentLength) == 1, let line = fields.first(.contentLength),
                bytes.isPlainlyWritten(line),
                let length = bytes.slice(line.value).decimalValue, length <= Self.lengthAllowed
            else { throw MalformedMessage(.contentLength) }
            self = .length(length)
        } else {
            self = .absent
        }
    }
}

extension Span where Element == UInt8 {
    /// The value of a run of one or more digits, or nil when there is something else or too much.
    var decimalValue: UInt64? {
        if isEmpty { return nil }
        var value: UInt64 = 0
        for index in indices {
            guard self[index].isDigit else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(self[index] &- 0x30))
            if overflow || carry { return nil }
            value = sum
        }
        return value
    }

    /// Whether a value has at most spaces before it and nothing behind it.
    ///
    /// Blanks around a framing value are allowed, but recipients have disagreed about tabs and
    /// about what stands behind `chunked` (pitfall W1), and nobody needs either.
    fileprivate func isPlainlyWritten(_ line: FieldLine) -> Bool {
        for index in (line.name.end &+ 1)..<Swift.max(Int(line.value.start), line.name.end &+ 1)
        where self[index] != 0x20 { return false }
        return isLineEnd(at: line.value.end)
    }
}
