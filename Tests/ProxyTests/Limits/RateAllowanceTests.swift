import Testing

@testable import Proxy

@Suite("Rates of clients")
struct RateAllowanceTests {
    private static let second: Int64 = 1_000_000_000

    @Test(
        "a client has its grace time, and as long as its bytes take at the lowest rate",
        arguments: [
            (UInt64(0), UInt64(240), Int64(20) * second), (240, 240, 21 * second),
            (120, 240, 20 * second + second / 2), (1 << 40, 1 << 30, (20 + 1024) * second),
            (.max, 1, .max), (1 << 60, 1 << 30, (20 + (1 << 30)) * second), (.max, 1 << 30, .max),
        ])
    func earned(bytes: UInt64, rate: UInt64, left: Int64) {
        let allowance = RateAllowance()
        #expect(allowance.left(bytes: bytes, rate: rate, grace: 20 * Self.second) == left)
    }

    @Test("waiting uses it up, to nothing and no further; a clock that stands still does not")
    func spent() {
        var allowance = RateAllowance()
        allowance.spend(15 * Self.second)
        allowance.spend(-1)
        #expect(allowance.left(bytes: 0, rate: 240, grace: 20 * Self.second) == 5 * Self.second)
        allowance.spend(6 * Self.second)
        #expect(allowance.left(bytes: 0, rate: 240, grace: 20 * Self.second) == 0)
        #expect(allowance.left(bytes: 480, rate: 240, grace: 20 * Self.second) == Self.second)
    }
}
