import Configuration
import Testing

@testable import portcullis

@Suite("portcullis health")
struct HealthTests {
    @Test("asks the admin listener of the example configuration unless told otherwise")
    func arguments() throws {
        #expect(try Invocation(["health"]) == .health(.tcp(host: "127.0.0.1", port: 9090)))
        #expect(
            try Invocation(["health", "--admin", "unix:/run/p.sock"])
                == .health(.unix(path: "/run/p.sock")))
        #expect(throws: UsageError.self) { try Invocation(["health", "--admin", "nonsense"]) }
        #expect(throws: UsageError.self) { try Invocation(["health", "extra"]) }
    }

    @Test("answers 1, and says why, when nobody listens")
    func nobody() {
        let transcript = Transcript(
            ["health", "--admin", "unix:/nonexistent/portcullis.sock"])
        #expect(transcript.exitCode == .wrong)
        #expect(transcript.errorText.contains("no healthy proxy answers"))
    }
}
