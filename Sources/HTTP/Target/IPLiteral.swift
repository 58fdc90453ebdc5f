/// Reads and writes IP addresses in the host of an authority (RFC 3986, section 3.2.2).
enum IPLiteral {
    /// An IPv4 address in four decimal parts without leading zeros, or nil.
    static func ipv4(_ text: Span<UInt8>) -> UInt32? {
        var address: UInt32 = 0
        var parts = 0
        var start = 0
        while start <= text.count {
            var end = start
            while end < text.count, text[end] != 0x2E { end += 1 }
            let part = text.extracting(start..<end)
            guard parts < 4, part.count <= 3, let value = part.decimalValue, value <= 255,
                part.count == 1 || part[0] != 0x30
            else { return nil }
            address = address << 8 | UInt32(value)
            parts += 1
            start = end + 1
        }
        return parts == 4 ? address : nil
    }

    /// The eight groups of an IPv6 address without zone, or nil (RFC 4291, section 2.2).
    static func ipv6(_ text: Span<UInt8>) -> InlineArray<8, UInt16>? {
        var head = InlineArray<8, UInt16>(repeating: 0)
        var count = 0
        var gap: Int?
        var index = 0
        if text.count >= 2, text[0] == 0x3A {
            guard text[1] == 0x3A else { return nil }
            gap = 0
            index = 2
        }
        while index < text.count {
            guard count < 8 else { return nil }
            var end = index
            while end < text.count, text[end] != 0x3A { end += 1 }
            let group = text.extracting(index..<end)
            if end == text.count, count <= 6, let address = ipv4(group) {
                head[count] = UInt16(truncatingIfNeeded: address >> 16)
                head[count + 1] = UInt16(truncatingIfNeeded: address)
                count += 2
                index = end
                break
            }
            guard let value = hexadecimal(group) else { return nil }
            head[count] = value
            count += 1
            index = end
            if index == text.count { break }
            index += 1
            if index < text.count, text[index] == 0x3A {
                guard gap == nil else { return nil }
                gap = count
                index += 1
            } else if index == text.count {
                return nil
            }
        }
        guard let gap else { return count == 8 ? head : nil }
        if count > 7 { return nil }
        var groups = InlineArray<8, UInt16>(repeating: 0)
        for position in 0..<gap { groups[position] = head[position] }
        for position in gap..<count { groups[8 - count + position] = head[position] }
        return groups
    }

    /// Writes an IPv6 literal with its brackets: small hexadecimal groups, the longest run of at
    /// least two zero groups as "::" (RFC 5952, section 4).
    static func append(_ groups: InlineArray<8, UInt16>, to text: inout [UInt8]) {
        let zeros = longestZeroRun(groups)
        text.append(0x5B)
        var index = 0
        while index < 8 {
            if index == zeros.start, zeros.count >= 2 {
                text.append(0x3A)
                text.append(0x3A)
                index += zeros.count
                continue
            }
            if index > 0, !(zeros.count >= 2 && index == zeros.start + zeros.count) {
                text.append(0x3A)
            }
            appendHexadecimal(groups[index], to: &text)
            index += 1
        }
        text.append(0x5D)
    }

    private static func longestZeroRun(
        _ groups: InlineArray<8, UInt16>
    ) -> (start: Int, count: Int) {
        var best = (start: 0, count: 0)
        var start = 0
        for index in 0..<8 {
            if groups[index] != 0 {
                start = index + 1
            } else if index + 1 - start > best.count {
                best = (start, index + 1 - start)
            }
        }
        return best
    }

    private static func hexadecimal(_ text: Span<UInt8>) -> UInt16? {
        guard !text.isEmpty, text.count <= 4 else { return nil }
        var value: UInt16 = 0
        for index in text.indices {
            guard let digit = text[index].hexadecimalValue else { return nil }
            value = value << 4 | UInt16(digit)
        }
        return value
    }

    private static func appendHexadecimal(_ value: UInt16, to text: inout [UInt8]) {
        var shift: UInt16 = 12
        while shift > 0, value >> shift == 0 { shift -= 4 }
        while true {
            let digit = UInt8(truncatingIfNeeded: value >> shift & 0xF)
            text.append(digit < 10 ? digit + 0x30 : digit + 0x57)
            if shift == 0 { return }
            shift -= 4
        }
    }
}
