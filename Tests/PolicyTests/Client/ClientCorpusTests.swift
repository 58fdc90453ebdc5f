import TestKit
import Testing

/// What the fuzzers are seeded with, and every input that once broke an invariant.
@Suite("Corpus of PROXY headers and forwarding fields")
struct ClientCorpusTests {
    @Test("every PROXY header of the corpus keeps the invariants")
    func proxyHeaders() throws {
        #expect(
            try FuzzCorpus.violations(in: "proxy-header", atLeast: 35) {
                ProxyHeaderInvariants.violation(of: $0)
            } == [])
    }

    @Test("every Forwarded of the corpus keeps the invariants")
    func forwarded() throws {
        #expect(
            try FuzzCorpus.violations(in: "forwarded", atLeast: 35) {
                ForwardedInvariants.violation(of: $0)
            } == [])
    }
}
