/// Base64 in the two alphabets of RFC 4648.
///
/// Decoding accepts exactly one spelling of each run of bytes: a token with a second spelling would
/// be a second token to whoever compares tokens (pitfall T12).
struct Base64: Sendable {
    /// Section 5, without padding: the alphabet of JWS (RFC 7515, section 2).
    static let url = Base64(last: "-_", isPadded: false)
    /// Section 4, with padding.
    static let standard = Base64(last: "+/", isPadded: true)

    private let isPadded: Bool
    private let characters: [UInt8]
    /// The six bits of each of the 256 bytes; 0xFF for a byte that is no character.
    private let values: [UInt8]

    private init(last: StaticString, isPadded: Bool) {
        characters =
            Array(UInt8(ascii: "A")...UInt8(ascii: "Z"))
            + Array(UInt8(ascii: "a")...UInt8(ascii: "z"))
            + Array(UInt8(ascii: "0")...UInt8(ascii: "9"))
            + last.withUTF8Buffer { Array($0) }
        var values = [UInt8](repeating: 0xFF, count: 256)
        for (value, character) in characters.enumerated() {
            values[Int(character)] = UInt8(truncatingIfNeeded: value)
        }
        self.values = values
        self.isPadded = isPadded
    }

    /// The bytes that `text` spells, or nil when it is not their one spelling.
    func decode(_ text: Span<UInt8>) -> [UInt8]? {
        guard let text = unpadded(text), text.count % 4 != 1 else { return nil }
        // The bits of 0xFF above the six never come from a character, so one OR over all values
        // finds a stranger anywhere in the text.
        var strange: UInt8 = 0
        var strayBits: UInt8 = 0
        // Safe: a byte indexes 256 values; `index` stays below the count of the text; each group of
        // four characters writes three bytes and a rest of two or three writes one or two, so that
        // what is written is what the capacity was computed from.
        let bytes = text.withUnsafeBufferPointer { text in
            values.withUnsafeBufferPointer { values in
                [UInt8](unsafeUninitializedCapacity: text.count * 3 / 4) { output, count in
                    var index = 0
                    while index + 4 <= text.count {
                        let first = values[Int(text[index])]
                        let second = values[Int(text[index + 1])]
                        let third = values[Int(text[index + 2])]
                        let fourth = values[Int(text[index + 3])]
                        strange |= first | second | third | fourth
                        output[count] = first << 2 | second >> 4
                        output[count + 1] = second << 4 | third >> 2
                        output[count + 2] = third << 6 | fourth
                        index += 4
                        count += 3
                    }
                    guard index < text.count else { return }
                    let first = values[Int(text[index])]
                    let second = values[Int(text[index + 1])]
                    strange |= first | second
                    output[count] = first << 2 | second >> 4
                    count += 1
                    strayBits = second << 4
                    guard index + 2 < text.count else { return }
                    let third = values[Int(text[index + 2])]
                    strange |= third
                    output[count] = second << 4 | third >> 2
                    count += 1
                    strayBits = third << 6
                }
            }
        }
        return strange < 64 && strayBits == 0 ? bytes : nil
    }

    /// The one spelling of `bytes`.
    func encode(_ bytes: Span<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var pending: UInt32 = 0
        var bits: UInt32 = 0
        for index in bytes.indices {
            pending = pending << 8 | UInt32(bytes[index])
            bits += 8
            while bits >= 6 {
                bits -= 6
                text.append(characters[Int(pending >> bits & 0x3F)])
            }
        }
        if bits > 0 { text.append(characters[Int(pending << (6 - bits) & 0x3F)]) }
        while isPadded && text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
        return text
    }

    /// `text` without its padding, or nil when the padding is not what this encoding wants.
    @_lifetime(copy text)
    private func unpadded(_ text: Span<UInt8>) -> Span<UInt8>? {
        guard isPadded else { return text }
        guard text.count % 4 == 0 else { return nil }
        var count = text.count
        while count > 0, text.count - count < 2, text[count - 1] == UInt8(ascii: "=") { count -= 1 }
        return text.extracting(..<count)
    }
}
