import Glibc
import TLS
import TestKit
import Testing

/// The environment belongs to the whole process, so each of these runs in one of its own.
@Suite("The system's store")
struct SystemTrustTests {
    @Test("is the file that SSL_CERT_FILE names, when it is set")
    func environment() async {
        await #expect(processExitsWith: .success) {
            let folder = try TemporaryFolder()
            let mint = try CertificateMint(in: folder)
            let identity = try mint.issue(["DNS:localhost"])
            let server = try await ScriptedServer.start(
                try .server(certificate: identity.certificate, key: identity.key)
            ) { _, _ in .init("hello") }
            setenv("SSL_CERT_FILE", mint.file, 1)
            let answer = try await TLSClient.exchange(
                "hi\r\n\r\n", port: server.port, trust: .system, host: "localhost")
            #expect(answer == "hello")
            if answer != "hello" { exit(EXIT_FAILURE) }
        }
    }

    @Test("a file that SSL_CERT_FILE names in vain is blamed, and not the peer")
    func missingFile() async {
        await #expect(processExitsWith: .success) {
            setenv("SSL_CERT_FILE", "/nonexistent/ca.pem", 1)
            let error = #expect(throws: TLSError.self) { _ = try TLSContext.client(trust: .system) }
            let expected = "cannot read /nonexistent/ca.pem: No such file or directory"
            if error?.detail != expected { exit(EXIT_FAILURE) }
        }
    }
}
