extension IPAddress {
    /// Parses an address as text: "192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7" (RFC 4291, section
    /// 2.2), without brackets, zone or port. Octets with leading zeros are refused, as some readers
    /// take them for octal.
    public init?(_ text: String) {
        self.init(text: Array(text.utf8).span)
    }

    /// As above, from bytes; does not allocate.
    public init?(text: Span<UInt8>) {
        // The longest form is eight groups, or six groups and an IPv4 address: 45 bytes.
        guard text.count <= 45 else { return nil }
        for index in text.indices where text[index] == UInt8(ascii: ":") {
            guard let words = Self.parseIPv6(text) else { return nil }
            self.init(high: words.high, low: words.low)
            return
        }
        guard let address = Self.parseIPv4(text) else { return nil }
        self.init(high: 0, low: 0xffff_0000_0000 | UInt64(address))
    }

    private static func parseIPv4(_ text: Span<UInt8>) -> UInt32? {
        var address: UInt32 = 0
        var position = 0
        for octet in 0..<4 {
            if octet > 0 {
                guard position < text.count, text[position] == UInt8(ascii: ".") else { return nil }
                position += 1
            }
            let start = position
            var value: UInt32 = 0
            while position < text.count, position - start < 3,
                case let digit = text[position] &- UInt8(ascii: "0"), digit < 10
            {
                value = value * 10 + UInt32(digit)
                position += 1
            }
            let count = position - start
            guard count > 0, value < 256, count == 1 || text[start] != UInt8(ascii: "0") else {
                return nil
            }
            address = address << 8 | value
        }
        return position == text.count ? address : nil
    }

    private static func parseIPv6(_ text: Span<UInt8>) -> (high: UInt64, low: UInt64)? {
        var groups = InlineArray<8, UInt16>(repeating: 0)
        var count = 0
        /// How many groups stand before "::".
        var gap: Int?
        var position = 0
        if text.count >= 2, text[0] == UInt8(ascii: ":"), text[1] == UInt8(ascii: ":") {
            gap = 0
            position = 2
        }
        while position < text.count {
            guard count < 8 else { return nil }
            if let address = parseIPv4(text.extracting(position...)) {
                guard count <= 6 else { return nil }
                groups[count] = UInt16(truncatingIfNeeded: address >> 16)
                groups[count + 1] = UInt16(truncatingIfNeeded: address)
                count += 2
                position = text.count
                break
            }
            guard let value = parseGroup(text, &position) else { return nil }
            groups[count] = value
            count += 1
            guard position < text.count else { break }
            guard text[position] == UInt8(ascii: ":") else { return nil }
            position += 1
            // A single colon must be followed by a group.
            guard position < text.count else { return nil }
            if text[position] == UInt8(ascii: ":") {
                guard gap == nil else { return nil }
                gap = count
                position += 1
            }
        }
        // "::" stands for at least one group.
        guard gap == nil ? count == 8 : count < 8 else { return nil }
        var words: (high: UInt64, low: UInt64) = (0, 0)
        for index in 0..<8 {
            let tail = 8 - count
            let group: UInt16 =
                switch gap {
                case nil: groups[index]
                case .some(let gap) where index < gap: groups[index]
                case .some(let gap) where index >= gap + tail: groups[index - tail]
                default: 0
                }
            words.high = words.high << 16 | words.low >> 48
            words.low = words.low << 16 | UInt64(group)
        }
        return words
    }

    /// One to four hexadecimal digits.
    private static func parseGroup(_ text: Span<UInt8>, _ position: inout Int) -> UInt16? {
        let start = position
        var value: UInt16 = 0
        while position < text.count, position - start < 4,
            let digit = hexadecimalDigit(text[position])
        {
            value = value << 4 | UInt16(digit)
            position += 1
        }
        return position > start ? value : nil
    }
}
