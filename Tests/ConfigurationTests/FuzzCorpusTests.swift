import TestKit
import Testing

@Suite("Fuzzing corpus of configurations")
struct FuzzCorpusTests {
    @Test("every input that ever failed holds the invariants")
    func holds() throws {
        #expect(
            try FuzzCorpus.violations(in: "toml", atLeast: 21) {
                ConfigurationInvariants.violation(of: $0)
            } == [])
    }
}
