/// Makes request ids: 128 random bits as 32 hex digits. Unique, not secret, so a fast generator seeded by the system's
/// is enough.
struct RequestIDGenerator {
    private var state: (UInt64, UInt64)

    init() {
        state = (.random(in: 1...UInt64.max), .random(in: 1...UInt64.max))
    }

    /// Writes the next id into `id`, keeping its memory.
    mutating func next(into id: inout [UInt8]) {
        id.removeAll(keepingCapacity: true)
        appendDigits(of: nextWord(), to: &id)
        appendDigits(of: nextWord(), to: &id)
    }

    private func appendDigits(of word: UInt64, to id: inout [UInt8]) {
        var rest = word
        for _ in 0..<16 {
            id.append(Self.digit(UInt8(truncatingIfNeeded: rest & 15)))
            rest >>= 4
        }
    }

    @inline(__always)
    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value
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
