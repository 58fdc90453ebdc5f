import Foundation
import TestKit
import Testing

@Suite("The fuzzing corpus of tokens and key sets")
struct CorpusTests {
    static let folder = URL(filePath: #filePath).appending(path: "../../../../Fuzz/Corpus")
        .standardized

    static func files(_ target: String) -> [URL] {
        let files = try? FileManager.default.contentsOfDirectory(
            at: folder.appending(path: target), includingPropertiesForKeys: nil)
        return (files ?? []).sorted { $0.path() < $1.path() }
    }

    @Test("there is one")
    func thereIsOne() {
        #expect(Self.files("jws").count > 40)
        #expect(Self.files("keyset").count > 30)
    }

    @Test("every token that was ever found holds the invariants")
    func tokens() throws {
        for file in Self.files("jws") {
            let violation = JWSInvariants.violation(of: Array(try Data(contentsOf: file)))
            #expect(violation == nil, "\(file.lastPathComponent)")
        }
    }

    @Test("every key set that was ever found holds the invariants")
    func keySets() throws {
        for file in Self.files("keyset") {
            let violation = KeySetInvariants.violation(of: Array(try Data(contentsOf: file)))
            #expect(violation == nil, "\(file.lastPathComponent)")
        }
    }
}
