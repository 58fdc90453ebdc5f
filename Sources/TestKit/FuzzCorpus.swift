internal import FoundationEssentials

/// What the fuzzers are seeded with, and every input that once broke an invariant.
public enum FuzzCorpus {
    /// What is wrong with the inputs of one fuzzer; none is what a test expects.
    ///
    /// - Parameter target: The fuzzer, and the folder of its inputs.
    /// - Parameter count: That there are fewer inputs is wrong, too: nothing may be lost unseen.
    /// - Parameter violation: The invariants that the fuzzer checks.
    /// - Returns: names of files, and what is wrong with each.
    public static func violations(
        in target: String, atLeast count: Int, _ violation: ([UInt8]) -> String?
    ) throws -> [String] {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fuzz/Corpus/\(target)")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        if names.count < count { return ["\(names.count) inputs, not \(count)"] }
        return try names.compactMap { name in
            let input = try Data(contentsOf: folder.appending(path: name))
            return violation(Array(input)).map { "\(name): \($0)" }
        }
    }
}
