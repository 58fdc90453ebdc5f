/// The kernel's random numbers, for what decides how the proxy behaves: a simulation has to be able
/// to choose them.
public struct KernelRandom: RandomNumberGenerator, Sendable {
    public init() {}

    public mutating func next() -> UInt64 {
        Syscalls.randomNumber()
    }
}
