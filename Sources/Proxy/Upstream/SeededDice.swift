internal import Reactor

/// Numbers that nobody needs to foresee or to be surprised by (xorshift64).
struct SeededDice {
    private var state: UInt64

    init() {
        var kernel = KernelRandom()
        state = .random(in: 1 ... .max, using: &kernel)
    }

    /// From 0 up to, but not including, 1.
    mutating func next() -> Double {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Double(state >> 11) / Double(1 << 53)
    }
}
