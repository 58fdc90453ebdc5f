import Foundation
import Testing

@testable import Configuration

/// Each `Golden/NAME.conf` has one kind of mistake; `NAME.expected` is what `check` prints about
/// it, or "ok".
///
/// With PORTCULLIS_WRITE_GOLDEN=1 in the environment the expectations are written instead of
/// compared: read the difference before committing it.
@Suite("Golden configurations")
struct GoldenTests {
    static let folder = repository.appending(path: "Tests/ConfigurationTests/Golden")

    static let names: [String] = {
        let files = try? FileManager.default.contentsOfDirectory(atPath: folder.path())
        return (files ?? []).filter { $0.hasSuffix(".conf") }.map { String($0.dropLast(5)) }
            .sorted()
    }()

    @Test("there are golden configurations")
    func thereAreSome() {
        #expect(Self.names.count > 50)
    }

    @Test("O1: says what is wrong, and where", arguments: names)
    func saysWhatIsWrong(name: String) throws {
        let bytes = try Data(contentsOf: Self.folder.appending(path: name + ".conf"))
        let (configuration, diagnostics) = Configuration.load(
            bytes: Array(bytes), fileName: "proxy.conf", surroundings: fakeSurroundings)
        let hasErrors = diagnostics.contains { $0.severity == .error }
        #expect((configuration == nil) == hasErrors)

        var report = diagnostics.map(\.description).joined(separator: "\n")
        if report.isEmpty { report = "ok" }
        let file = Self.folder.appending(path: name + ".expected")
        if ProcessInfo.processInfo.environment["PORTCULLIS_WRITE_GOLDEN"] == "1" {
            try (report + "\n").write(to: file, atomically: true, encoding: .utf8)
        }
        let expected = try String(contentsOf: file, encoding: .utf8)
        #expect(report + "\n" == expected)
    }
}
