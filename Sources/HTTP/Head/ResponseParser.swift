/// Reads response heads (RFC 9112) from an upstream. What could be split or smuggled is refused
/// (pitfall W10).
public struct ResponseParser: Sendable {
    private let limits: HeadLimits
    private var scanner = HeadScanner()

    /// A parser for the first answer of a connection.
    public init(limits: HeadLimits) {
        self.limits = limits
    }

    /// Parses the head at the start of `bytes`; `requestMethod` decides whether a body may follow.
    ///
    /// - Returns: true when `head` is complete; false when more bytes are needed. Call again with
    ///   the same bytes and more behind them.
    /// - Throws: `MalformedMessage`; the upstream connection must then be closed and the client
    ///   gets a 502.
    public mutating func parse(
        _ bytes: Span<UInt8>, requestMethod: Method, into head: inout ResponseHead
    ) throws(MalformedMessage) -> Bool {
        let end = try scanner.scan(
            bytes, limit: limits.bytes, startLineLimit: limits.bytes, skipsEmptyLines: false)
        guard let end else { return false }
        reset()
        head.clear()
        let fieldsStart = try parseStatusLine(bytes, into: &head)
        head.length = try head.fields.parse(
            bytes, from: fieldsStart, limit: limits.fields, of: .response)
        guard head.length == end else { throw MalformedMessage(.fieldName) }
        try head.interpret(bytes, requestMethod: requestMethod)
        return true
    }

    /// Forgets a half-read head.
    public mutating func reset() {
        scanner = HeadScanner()
    }

    /// Reads `HTTP/1.1 200 OK`; the reason may be missing, with or without its space, as many
    /// servers have it (RFC 9112, section 4). Statuses from 600 on are none (RFC 9110, section 15),
    /// but backends send them, and clients are to take them for a 5xx.
    ///
    /// - Returns: The index of the first field line.
    @inline(__always)
    private func parseStatusLine(
        _ bytes: Span<UInt8>, into head: inout ResponseHead
    ) throws(MalformedMessage) -> Int {
        head.version = try Version(bytes, at: 0)
        let statusStart = Version.length + 1
        let statusEnd = statusStart + 3
        guard statusEnd < bytes.count, bytes[Version.length] == 0x20,
            let status = bytes.extracting(statusStart..<statusEnd).decimalValue,
            status >= 100
        else { throw MalformedMessage(.status) }
        head.status = UInt16(truncatingIfNeeded: status)
        if bytes.isLineEnd(at: statusEnd) { return statusEnd + 2 }
        guard bytes[statusEnd] == 0x20 else { throw MalformedMessage(.status) }
        let lineEnd = bytes.endOfText(from: statusEnd + 1)
        guard bytes.isLineEnd(at: lineEnd) else { throw MalformedMessage(.startLine) }
        head.reason = ByteRange(start: statusEnd + 1, count: lineEnd - statusEnd - 1)
        return lineEnd + 2
    }
}

extension ResponseHead {
    /// Forgets the last head and keeps the memory.
    @inline(__always)
    fileprivate mutating func clear() {
        reason = .empty
        fields.removeAll()
        framing = .none
        isPersistent = true
        length = 0
    }

    /// Decides how the body is delimited and whether the connection survives it (RFC 9112, sections
    /// 6.3 and 9.3).
    @inline(__always)
    fileprivate mutating func interpret(
        _ bytes: Span<UInt8>, requestMethod: Method
    ) throws(MalformedMessage) {
        let options = try ConnectionOptions(bytes, fields: &fields, of: .response)
        isPersistent = options.isPersistent(version)
        let declared = try DeclaredFraming(bytes, fields: fields, version: version)
        if isInformational || status == 204 {
            // A backend that declares a body here may well send it: what follows is not trusted.
            if declared != .absent, declared != .length(0) { isPersistent = false }
            dropLength()
            return
        }
        if requestMethod == .head || status == 304 { return }
        switch declared {
        case .length(0): framing = .none
        case .length(let length): framing = .length(length)
        case .chunked: framing = .chunked
        case .absent:
            framing = .untilClose
            isPersistent = false
        }
    }

    /// A length must not go on to the client where there can be no body (RFC 9110, section 8.6),
    /// unlike in answers to HEAD and in 304, where it tells what a GET would bring.
    private mutating func dropLength() {
        for index in fields.lines.indices where fields.lines[index].known == .contentLength {
            fields.lines[index].isHopByHop = true
        }
    }
}
