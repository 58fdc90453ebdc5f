/// A set of ASCII characters in two words: membership without a table in memory.
struct ByteSet: Sendable {
    private let low: UInt64
    private let high: UInt64

    /// Makes the set of the characters of `literal`.
    @inline(__always)
    init(_ literal: StaticString) {
        var low: UInt64 = 0
        var high: UInt64 = 0
        literal.withUTF8Buffer { characters in
            for byte in characters {
                if byte < 64 {
                    low |= 1 &<< UInt64(byte)
                } else {
                    high |= 1 &<< UInt64(byte & 63)
                }
            }
        }
        self.low = low
        self.high = high
    }

    @inline(__always)
    private init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        let word = byte < 64 ? low : (byte < 128 ? high : 0)
        return (word &>> UInt64(byte & 63)) & 1 != 0
    }

    @inline(__always)
    func union(_ other: ByteSet) -> ByteSet {
        ByteSet(low: low | other.low, high: high | other.high)
    }

    /// ALPHA and DIGIT of RFC 5234.
    static let alphanumeric = ByteSet(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")

    /// tchar without capitals, which HTTP/2 has no use for (RFC 9113, section 8.2.1).
    static let smallToken = ByteSet("abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~")

    /// tchar of RFC 9110, section 5.6.2.
    static let token = alphanumeric.union(ByteSet("!#$%&'*+-.^_`|~"))
}

extension UInt8 {
    @inline(__always)
    var isDigit: Bool { self &- 0x30 < 10 }

    @inline(__always)
    var isAlphanumeric: Bool { (self | 0x20) &- 0x61 < 26 || isDigit }

    /// SP or HTAB, the only characters of optional whitespace (RFC 9110, section 5.6.3).
    @inline(__always)
    var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// ASCII capitals made small; other bytes as they are.
    @inline(__always)
    var lowercased: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    /// The value of a hexadecimal digit, or nil.
    @inline(__always)
    var hexadecimalValue: UInt8? {
        if isDigit { return self &- 0x30 }
        let letter = (self | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }
}
