import FoundationEssentials
import TestKit
import Testing

/// What the fuzzers are seeded with, and every input that once broke an invariant.
@Suite("Corpus of PROXY headers and forwarding fields")
struct ClientCorpusTests {
    @Test("every PROXY header of the corpus keeps the invariants")
    func proxyHeaders() throws {
        try replay("proxy-header", atLeast: 35) { ProxyHeaderInvariants.violation(of: $0) }
    }

    @Test("every Forwarded of the corpus keeps the invariants")
    func forwarded() throws {
        try replay("forwarded", atLeast: 35) { ForwardedInvariants.violation(of: $0) }
    }

    private func replay(
        _ target: String, atLeast count: Int, violation: ([UInt8]) -> String?
    ) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
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
