extension RequestTarget {
    /// Forgets the last target and keeps the memory.
    @inline(__always)
    mutating func removeAll() {
        form = .origin
        query = .empty
        hasQuery = false
        if isRewritten {
            isRewritten = false
            rewritten.removeAll(keepingCapacity: true)
        }
        // Its memory is the last host's, who may be asked for again.
        host = []
        port = nil
    }

    /// Reads the target that starts at `start` and ends before the next space (RFC 9112, section
    /// 3.2).
    ///
    /// - Returns: The authority of an absolute-form target with its scheme, for comparison with
    ///   `Host`.
    /// - Throws: `target`, `path`, `fragment`, `host`, `targetTooLong`.
    @inline(__always)
    mutating func parse(
        _ bytes: Span<UInt8>, from start: Int, method: Method, limit: Int
    ) throws(MalformedMessage) -> AbsoluteAuthority? {
        guard start < bytes.count else { throw MalformedMessage(.target) }
        var authority: AbsoluteAuthority?
        let end: Int
        if bytes[start] == 0x2F {
            end = try parsePathAndQuery(bytes, from: start)
        } else if bytes[start] == 0x2A {
            guard method == .options else { throw MalformedMessage(.target) }
            form = .asterisk
            path = ByteRange(start: start, count: 1)
            end = start + 1
        } else {
            (authority, end) = try parseAbsolute(bytes, from: start, method: method)
        }
        guard end < bytes.count, bytes[end] == 0x20 else {
            throw MalformedMessage(Self.whatEnds(bytes, at: end))
        }
        if end &- start > limit { throw MalformedMessage(.targetTooLong) }
        raw = ByteRange(start: start, count: end &- start)
        return authority
    }

    /// A line that ends with its target is HTTP/0.9.
    private static func whatEnds(_ bytes: Span<UInt8>, at index: Int) -> MalformedMessage.Kind {
        if bytes.isLineEnd(at: index) { return .version }
        return index < bytes.count && bytes[index] == 0x23 ? .fragment : .target
    }

    /// - Returns: The index behind the query.
    @inline(__always)
    private mutating func parsePathAndQuery(
        _ bytes: Span<UInt8>, from start: Int
    ) throws(MalformedMessage) -> Int {
        var end = bytes.endOfPlainPath(from: start &+ 1)
        if end < bytes.count, bytes[end] == 0x20 || bytes[end] == 0x3F {
            path = ByteRange(start: start, count: end &- start)
        } else {
            end = try normalisePath(bytes, from: start)
        }
        if end < bytes.count, bytes[end] == 0x3F {
            let queryEnd = bytes.endOfVisible(from: end &+ 1)
            hasQuery = true
            query = ByteRange(start: end &+ 1, count: queryEnd &- end &- 1)
            return queryEnd
        }
        return end
    }

    private mutating func parseAbsolute(
        _ bytes: Span<UInt8>, from start: Int, method: Method
    ) throws(MalformedMessage) -> (AbsoluteAuthority, Int) {
        let isHTTPS = bytes.hasPrefix("https", at: start)
        let schemeEnd = start + (isHTTPS ? 5 : 4)
        guard isHTTPS || bytes.hasPrefix("http", at: start),
            bytes.hasExactPrefix("://", at: schemeEnd)
        else { throw MalformedMessage(.target) }
        form = .absolute
        let authorityStart = schemeEnd + 3
        var end = authorityStart
        while end < bytes.count, !Self.endsAuthority.contains(bytes[end]), bytes[end] < 0x80 {
            end += 1
        }
        let range = ByteRange(start: authorityStart, count: end - authorityStart)
        let authority = AbsoluteAuthority(range: range, isHTTPS: isHTTPS)
        if end < bytes.count, bytes[end] == 0x2F {
            return (authority, try parsePathAndQuery(bytes, from: end))
        }
        // RFC 9112, section 3.2.4: OPTIONS without path and query is about the server as a whole.
        let isQueried = end < bytes.count && bytes[end] == 0x3F
        if method == .options, !isQueried { form = .asterisk }
        rewritten.append(form == .asterisk ? 0x2A : 0x2F)
        isRewritten = true
        path = ByteRange(start: 0, count: 1)
        if !isQueried { return (authority, end) }
        let queryEnd = bytes.endOfVisible(from: end + 1)
        hasQuery = true
        query = ByteRange(start: end + 1, count: queryEnd - end - 1)
        return (authority, queryEnd)
    }

    private static let endsAuthority = ByteSet("/?# \t\r\n\u{0}")
}

/// The authority of an absolute-form target, still to be read.
struct AbsoluteAuthority: Sendable {
    /// Where it stands, without the scheme.
    var range: ByteRange
    /// The scheme was https.
    var isHTTPS: Bool

    /// The port that stands for an absent one.
    var defaultPort: UInt16 { isHTTPS ? 443 : 80 }
}
