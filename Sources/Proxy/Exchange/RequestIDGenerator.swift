/// Makes request ids: 128 random bits as 32 hex digits. Unique, not secret, so a fast generator seeded by the system's
/// is enough.
struct RequestIDGenerator {
    private static let digits: [UInt8] = Array("0123456789abcdef".utf8)
    private var state: (UInt64, UInt64)

    init() {
        state = (.random(in: 1...UInt64.max), .random(in: 1...UInt64.max))
    }

    /// Writes the next id into `id`, keeping its memory.
    mutating func next(into id: inout [UInt8]) {
        id.removeAll(keepingCapacity: true)
        for word in [nextWord(), nextWord()] {
            var rest = word
            for _ in 0..<16 {
                id.append(Self.digits[Int(rest & 15)])
                rest >>= 4
            }
        }
    }

    /// xoroshiro128+ (Blackman and Vigna).
    private mutating func nextWord() -> UInt64 {
        let (first, second) = state
        let mixed = first ^ second
        state = (
            (first << 24 | first >> 40) ^ mixed ^ (mixed << 16),
            mixed << 37 | mixed >> 27
        )
        return first &+ second
    }
}
