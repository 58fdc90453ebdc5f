import TestKit
import Testing

/// What the fuzzers are seeded with, and every input that once broke an invariant.
@Suite("Corpus")
struct CorpusTests {
    @Test("Every request of the corpus keeps the invariants")
    func replaysRequests() throws {
        #expect(
            try FuzzCorpus.violations(in: "http1-request", atLeast: 100) {
                HeadInvariants.violation(ofRequest: $0)
            } == [])
    }

    @Test("Every response of the corpus keeps the invariants")
    func replaysResponses() throws {
        #expect(
            try FuzzCorpus.violations(in: "http1-response", atLeast: 30) {
                HeadInvariants.violation(ofResponse: $0)
            } == [])
    }

    @Test("Every chunked body of the corpus keeps the invariants")
    func replaysChunkedBodies() throws {
        #expect(
            try FuzzCorpus.violations(in: "http1-chunked", atLeast: 40) {
                ChunkedInvariants.violation(of: $0)
            } == [])
    }

    @Test("W3: every header block of the corpus keeps the invariants on its way through text")
    func replaysTranslations() throws {
        #expect(
            try FuzzCorpus.violations(in: "http2-translation", atLeast: 40) {
                TranslationInvariants.violation(of: $0)
            } == [])
    }

    @Test("W9: every hostile HTTP/2 client of the corpus keeps the invariants")
    func replaysClients() throws {
        #expect(
            try FuzzCorpus.violations(in: "http2-server", atLeast: 30) {
                HTTP2ServerInvariants.violation(of: $0)
            } == [])
    }

    @Test("W10: every hostile HTTP/2 server of the corpus keeps the invariants")
    func replaysServers() throws {
        #expect(
            try FuzzCorpus.violations(in: "http2-upstream", atLeast: 20) {
                HTTP2UpstreamInvariants.violation(of: $0)
            } == [])
    }
}
