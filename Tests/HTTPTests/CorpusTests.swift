import FoundationEssentials
import TestKit
import Testing

/// What the fuzzers are seeded with, and every input that once broke an invariant.
@Suite("Corpus")
struct CorpusTests {
    @Test("Every request of the corpus keeps the invariants")
    func replaysRequests() throws {
        try replay("http1-request", atLeast: 100) { HeadInvariants.violation(ofRequest: $0) }
    }

    @Test("Every response of the corpus keeps the invariants")
    func replaysResponses() throws {
        try replay("http1-response", atLeast: 30) { HeadInvariants.violation(ofResponse: $0) }
    }

    @Test("Every chunked body of the corpus keeps the invariants")
    func replaysChunkedBodies() throws {
        try replay("http1-chunked", atLeast: 40) { ChunkedInvariants.violation(of: $0) }
    }

    @Test("W3: every header block of the corpus keeps the invariants on its way through text")
    func replaysTranslations() throws {
        try replay("http2-translation", atLeast: 40) { TranslationInvariants.violation(of: $0) }
    }

    @Test("W9: every hostile HTTP/2 client of the corpus keeps the invariants")
    func replaysClients() throws {
        try replay("http2-server", atLeast: 30) { HTTP2ServerInvariants.violation(of: $0) }
    }

    @Test("W10: every hostile HTTP/2 server of the corpus keeps the invariants")
    func replaysServers() throws {
        try replay("http2-upstream", atLeast: 20) { HTTP2UpstreamInvariants.violation(of: $0) }
    }

    private func replay(
        _ target: String, atLeast count: Int, violation: ([UInt8]) -> String?
    ) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let folder = root.appending(path: "Fuzz/Corpus/\(target)").path
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(names.count >= count)
        for name in names {
            let input = try Data(contentsOf: URL(filePath: "\(folder)/\(name)"))
            #expect(violation(Array(input)) == nil, "\(name)")
        }
    }
}
