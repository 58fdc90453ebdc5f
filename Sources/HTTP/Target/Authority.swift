/// Reads `host [":" port]` (RFC 9110, section 4.2) into one canonical spelling (pitfall P5).
///
/// Accepted are DNS names, IPv4 addresses in four decimal parts, and IPv6 literals in brackets.
/// User information, percent-encoding, empty labels and every other spelling of an IPv4 address are
/// refused.
enum Authority {
    /// Octets of a domain name in text form (RFC 1035, section 2.3.4).
    private static let nameLength = 253
    private static let labelLength = 63

    /// Appends the canonical host of the authority in `range` to `host`, which must be empty.
    ///
    /// - Returns: The port, or nil when there is none.
    /// - Throws: `host`.
    @inline(__always)
    static func parse(
        _ bytes: Span<UInt8>, _ range: ByteRange, into host: inout [UInt8]
    ) throws(MalformedMessage) -> UInt16? {
        let start = Int(range.start)
        guard start < range.end else { throw MalformedMessage(.host) }
        let end =
            bytes[start] == 0x5B
            ? try parseIPv6(bytes, range, into: &host) : try parseName(bytes, range, into: &host)
        if end == range.end { return nil }
        guard bytes[end] == 0x3A else { throw MalformedMessage(.host) }
        return try parsePort(bytes, from: end &+ 1, to: range.end)
    }

    /// - Returns: The index behind the name.
    @inline(__always)
    private static func parseName(
        _ bytes: Span<UInt8>, _ range: ByteRange, into host: inout [UInt8]
    ) throws(MalformedMessage) -> Int {
        var index = Int(range.start)
        var labelStart = index
        // A last label that starts with a digit may be the end of an IPv4 address.
        while index < range.end {
            let byte = bytes[index]
            if byte == 0x3A { break }
            if byte == 0x2E {
                guard index > labelStart else { throw MalformedMessage(.host) }
                labelStart = index &+ 1
            } else {
                guard byte.isAlphanumeric || byte == 0x2D || byte == 0x5F,
                    index &- labelStart < labelLength
                else { throw MalformedMessage(.host) }
            }
            host.append(byte.lowercased)
            index &+= 1
        }
        if host.last == 0x2E {
            host.removeLast()
            labelStart = index &- 1
            while labelStart > range.start, bytes[labelStart &- 1] != 0x2E { labelStart &-= 1 }
        }
        guard !host.isEmpty, host.count <= nameLength else { throw MalformedMessage(.host) }
        if bytes[labelStart].isDigit { try checkIPv4(host.span) }
        return index
    }

    /// Refuses a host whose last label is a number unless it is a plain IPv4 address: resolvers
    /// read `127.1`, `0x7f.0.0.1` and `2130706433` as addresses too.
    private static func checkIPv4(_ host: Span<UInt8>) throws(MalformedMessage) {
        var last = host.count
        while last > 0, host[last - 1] != 0x2E { last -= 1 }
        let label = host.extracting(last..<host.count)
        let isHexadecimal = label.count > 1 && label.hasExactPrefix("0x")
        guard label.decimalValue != nil || isHexadecimal else { return }
        guard IPLiteral.ipv4(host) != nil else { throw MalformedMessage(.host) }
    }

    /// - Returns: The index behind the bracket.
    private static func parseIPv6(
        _ bytes: Span<UInt8>, _ range: ByteRange, into host: inout [UInt8]
    ) throws(MalformedMessage) -> Int {
        var end = Int(range.start) + 1
        while end < range.end, bytes[end] != 0x5D { end += 1 }
        guard end < range.end,
            let groups = IPLiteral.ipv6(bytes.extracting((Int(range.start) + 1)..<end))
        else { throw MalformedMessage(.host) }
        IPLiteral.append(groups, to: &host)
        return end + 1
    }

    private static func parsePort(
        _ bytes: Span<UInt8>, from start: Int, to end: Int
    ) throws(MalformedMessage) -> UInt16 {
        guard start < end, end - start <= 5, bytes[start] != 0x30,
            let value = bytes.extracting(start..<end).decimalValue,
            let port = UInt16(exactly: value)
        else { throw MalformedMessage(.host) }
        return port
    }
}
