/// An IPv4 or IPv6 address. An IPv4-mapped IPv6 address is the IPv4 address that it stands for.
public struct IPAddress: Sendable, Hashable {
    /// The address as 128 bits; an IPv4 address in the form ::ffff:a.b.c.d.
    let high: UInt64
    let low: UInt64

    init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// An address in network byte order: 4 or 16 bytes.
    public init?(bytes: Span<UInt8>) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        var words: (high: UInt64, low: UInt64) = (0, bytes.count == 4 ? 0xffff : 0)
        for index in bytes.indices {
            words.high = words.high << 8 | words.low >> 56
            words.low = words.low << 8 | UInt64(bytes[index])
        }
        self.init(high: words.high, low: words.low)
    }

    /// Whether it is an IPv4 address, mapped or not.
    public var isIPv4: Bool { high == 0 && low >> 32 == 0xffff }

    /// Writes what one client is for `sticky_by = "client_ip"`: an IPv4 address as it is, of an
    /// IPv6 address the /64 network, as the hosts of a network change the other half at will and
    /// every few hours (RFC 8981). Text, such as "192.0.2.7" or "2001:db8:0:7::/64" (RFC 5952).
    /// Does not allocate when `bytes` has room for 24 more.
    public func appendShareKey(to bytes: inout [UInt8]) {
        if isIPv4 {
            appendText(to: &bytes)
        } else {
            IPAddress(high: high, low: 0).appendText(to: &bytes)
            bytes.append(UInt8(ascii: "/"))
            bytes.append(UInt8(ascii: "6"))
            bytes.append(UInt8(ascii: "4"))
        }
    }

    /// Writes the address as text (RFC 5952). At most 39 bytes.
    public func appendText(to bytes: inout [UInt8]) {
        if isIPv4 {
            for octet in 0..<4 {
                if octet > 0 { bytes.append(UInt8(ascii: ".")) }
                appendDecimal(UInt8(truncatingIfNeeded: low >> UInt64(24 - 8 * octet)), to: &bytes)
            }
            return
        }
        let zeros = longestRunOfZeros
        var index = 0
        while index < 8 {
            if index == zeros.lowerBound, !zeros.isEmpty {
                bytes.append(UInt8(ascii: ":"))
                bytes.append(UInt8(ascii: ":"))
                index = zeros.upperBound
                continue
            }
            if index > 0, index != zeros.upperBound || zeros.isEmpty {
                bytes.append(UInt8(ascii: ":"))
            }
            appendHexadecimal(group(index), to: &bytes)
            index += 1
        }
    }

    /// The first longest run of at least two groups that are 0; empty when there is none (RFC 5952,
    /// section 4.2).
    private var longestRunOfZeros: Range<Int> {
        var longest = 0..<0
        var start = 0
        for index in 0..<8 {
            guard group(index) == 0 else {
                start = index + 1
                continue
            }
            if index + 1 - start > max(longest.count, 1) { longest = start..<(index + 1) }
        }
        return longest
    }

    private func group(_ index: Int) -> UInt16 {
        let word = index < 4 ? high : low
        return UInt16(truncatingIfNeeded: word >> UInt64(48 - 16 * (index & 3)))
    }

    private func appendDecimal(_ value: UInt8, to bytes: inout [UInt8]) {
        if value >= 100 { bytes.append(UInt8(ascii: "0") + value / 100) }
        if value >= 10 { bytes.append(UInt8(ascii: "0") + value / 10 % 10) }
        bytes.append(UInt8(ascii: "0") + value % 10)
    }

    private func appendHexadecimal(_ value: UInt16, to bytes: inout [UInt8]) {
        var shift = value >= 0x1000 ? 12 : value >= 0x100 ? 8 : value >= 0x10 ? 4 : 0
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: value >> UInt16(shift) & 15)
            bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            shift -= 4
        }
    }
}
