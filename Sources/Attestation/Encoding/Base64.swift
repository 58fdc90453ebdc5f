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
    /// Four tables of 256 entries, one for each place in a group of four characters: the bits of
    /// the character where they belong in the group's three bytes, the first of which is the lowest.
    private let places: [UInt32]

    /// The bit of a byte that is no character: no character reaches it in any of the tables.
    private static let stranger: UInt32 = 1 << 31

    private init(last: StaticString, isPadded: Bool) {
        characters =
            Array(UInt8(ascii: "A")...UInt8(ascii: "Z"))
            + Array(UInt8(ascii: "a")...UInt8(ascii: "z"))
            + Array(UInt8(ascii: "0")...UInt8(ascii: "9"))
            + last.withUTF8Buffer { Array($0) }
        var places = [UInt32](repeating: Self.stranger, count: 4 * 256)
        for (index, character) in characters.enumerated() {
            let value = UInt32(truncatingIfNeeded: index)
            let character = Int(character)
            places[character] = value << 2
            places[256 + character] = value >> 4 | (value & 0xF) << 12
            places[512 + character] = (value >> 2) << 8 | (value & 3) << 22
            places[768 + character] = value << 16
        }
        self.places = places
        self.isPadded = isPadded
    }

    /// The bytes that `text` spells, or nil when it is not their one spelling.
    func decode(_ text: Span<UInt8>) -> [UInt8]? {
        guard let text = unpadded(text) else { return nil }
        guard text.count > 0 else { return [] }
        // The last group has two to four characters and spells one byte less.
        let last = (text.count &- 1) & 3 &+ 1
        let whole = text.count &- last
        guard last > 1 else { return nil }
        let count = whole / 4 * 3 + last - 1
        // Room that is filled with the text itself, which is longer: `init(repeating:count:)` spends
        // hundreds of instructions on finding the type of its storage.
        var bytes: [UInt8] = []
        text.withUnsafeBufferPointer { text in
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: text[..<count]))
        }
        // One OR over all groups finds a stranger anywhere in the text.
        var strange: UInt32 = 0
        // Safe: a byte indexes one of 256 entries of each table; `text` is read below its count. A
        // group before the last writes four bytes, of which the fourth is the next group's first;
        // the last group writes as many as were counted for it.
        text.withUnsafeBufferPointer { text in
            places.withUnsafeBufferPointer { places in
                bytes.withUnsafeMutableBytes { bytes in
                    var index = 0
                    var count = 0
                    while index < whole {
                        let group =
                            places[Int(text[index])] | places[256 &+ Int(text[index &+ 1])]
                            | places[512 &+ Int(text[index &+ 2])]
                            | places[768 &+ Int(text[index &+ 3])]
                        strange |= group
                        bytes.storeBytes(
                            of: group.littleEndian, toByteOffset: count, as: UInt32.self)
                        index &+= 4
                        count &+= 3
                    }
                    var group = places[Int(text[index])] | places[256 &+ Int(text[index &+ 1])]
                    if last > 2 { group |= places[512 &+ Int(text[index &+ 2])] }
                    if last > 3 { group |= places[768 &+ Int(text[index &+ 3])] }
                    while count < bytes.count {
                        bytes[count] = UInt8(truncatingIfNeeded: group)
                        group >>= 8
                        count &+= 1
                    }
                    // Above its bytes are stray bits, or a stranger's.
                    if group != 0 { strange |= Self.stranger }
                }
            }
        }
        return strange & Self.stranger == 0 ? bytes : nil
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
