import Foundation
import TestKit
import Testing

@Suite("Fuzzing corpus of configurations")
struct FuzzCorpusTests {
    static let files: [String] = {
        let folder = repository.appending(path: "Fuzz/Corpus/toml").path()
        return ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }()

    @Test("there is a corpus")
    func thereIsOne() {
        #expect(Self.files.count > 20)
    }

    @Test("every input that ever failed holds the invariants", arguments: files)
    func holds(file: String) throws {
        let bytes = try Data(
            contentsOf: repository.appending(path: "Fuzz/Corpus/toml").appending(path: file))
        #expect(ConfigurationInvariants.violation(of: Array(bytes)) == nil)
    }
}
