import TestKit
import Testing

@Suite("The fuzzing corpus of tokens and key sets")
struct CorpusTests {
    @Test("every token that was ever found holds the invariants")
    func tokens() throws {
        #expect(
            try FuzzCorpus.violations(in: "jws", atLeast: 41) {
                JWSInvariants.violation(of: $0)
            } == [])
    }

    @Test("every key set that was ever found holds the invariants")
    func keySets() throws {
        #expect(
            try FuzzCorpus.violations(in: "keyset", atLeast: 31) {
                KeySetInvariants.violation(of: $0)
            } == [])
    }
}
