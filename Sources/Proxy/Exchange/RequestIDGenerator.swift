internal import Reactor

/// Makes request ids: 128 random bits as 32 hex digits. Unique, not secret, so a fast generator
/// seeded by the system's is enough.
struct RequestIDGenerator {
    private var state: (UInt64, UInt64)

    init() {
        var kernel = KernelRandom()
        state = (
            .random(in: 1...UInt64.max, using: &kernel), .random(in: 1...UInt64.max, using: &kernel)
        )
    }

    /// Writes the next id into `id`, keeping its memory.
    mutating func next(into id: inout [UInt8]) {
        if id.count != 32 { id = Array(repeating: 0, count: 32) }
        let first = nextWord()
        let second = nextWord()
        // Safe: the array has 32 bytes, and four stores of eight fill exactly these.
        id.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: Self.digits(of: first >> 32), toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: Self.digits(of: first), toByteOffset: 8, as: UInt64.self)
            bytes.storeBytes(of: Self.digits(of: second >> 32), toByteOffset: 16, as: UInt64.self)
            bytes.storeBytes(of: Self.digits(of: second), toByteOffset: 24, as: UInt64.self)
        }
    }

    /// The low 32 bits as eight ASCII hex digits, one a byte: the nibbles are spread over the
    /// bytes, and those above 9 are moved on to the letters.
    private static func digits(of word: UInt64) -> UInt64 {
        var nibbles = word & 0xFFFF_FFFF
        nibbles = (nibbles | nibbles << 16) & 0x0000_FFFF_0000_FFFF
        nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF
        nibbles = (nibbles | nibbles << 4) & 0x0F0F_0F0F_0F0F_0F0F
        let letters = ((nibbles &+ 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101
        return nibbles &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
    }

    /// Random bits: xoroshiro128+ (Blackman and Vigna).
    mutating func nextWord() -> UInt64 {
        let (first, second) = state
        let mixed = first ^ second
        state = (
            (first << 24 | first >> 40) ^ mixed ^ (mixed << 16),
            mixed << 37 | mixed >> 27
        )
        return first &+ second
    }
}
