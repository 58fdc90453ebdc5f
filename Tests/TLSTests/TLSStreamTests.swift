import Reactor
import TLS
import TestKit
import Testing

@Suite("TLS stream")
struct TLSStreamTests {
    let folder: TemporaryFolder
    let mint: CertificateMint

    init() throws {
        folder = try TemporaryFolder()
        mint = try CertificateMint(in: folder)
    }

    private func server(
        _ names: [String], days: ClosedRange<Int> = -1...5,
        script: @escaping ScriptedServer.Script = { _, _ in .init("hello") }
    ) async throws -> ScriptedServer {
        let identity = try mint.issue(names, days: days)
        return try await .start(
            try .server(certificate: identity.certificate, key: identity.key), script: script)
    }

    private func failure(
        _ server: ScriptedServer, host: String = "localhost", trust: String? = nil,
        patience: Duration = .seconds(5)
    ) async throws -> TLSError {
        try #require(
            await #expect(throws: TLSError.self) {
                _ = try await TLSClient.exchange(
                    "hi\r\n\r\n", port: server.port,
                    trust: .certificates(inFile: trust ?? mint.file), host: host,
                    patience: patience)
            })
    }

    @Test(
        "exchanges bytes with a peer whose certificate is for the host",
        arguments: [
            ("localhost", "DNS:localhost"), ("127.0.0.1", "IP:127.0.0.1"), ("::1", "IP:::1"),
            ("a.example.com", "DNS:*.example.com"), ("LOCALHOST", "DNS:localhost"),
        ])
    func matchingHost(host: String, name: String) async throws {
        let server = try await server([name])
        let answer = try await TLSClient.exchange(
            "hi\r\n\r\n", port: server.port, trust: .certificates(inFile: mint.file), host: host)
        #expect(answer == "hello")
        #expect(await server.requests == ["hi\r\n\r\n"])
    }

    @Test(
        "refuses a certificate that is for another host, and says for which it is",
        arguments: [
            ("localhost", ["DNS:other.example", "DNS:*.third.example"], "hostname mismatch"),
            ("a.b.example.com", ["DNS:*.example.com"], "hostname mismatch"),
            ("127.0.0.1", ["IP:127.0.0.2", "DNS:127.0.0.1"], "IP address mismatch"),
        ])
    func otherHost(host: String, names: [String], words: String) async throws {
        let error = try await failure(try await server(names), host: host)
        let list = names.map { $0.drop { $0 != ":" }.dropFirst() }.joined(separator: ", ")
        #expect(error.kind == .certificate)
        #expect(error.detail == "\(words): certificate is for \(list)")
    }

    @Test("refuses a certificate that names no host at all")
    func noHost() async throws {
        let error = try await failure(try await server([]))
        #expect(error.detail == "hostname mismatch: certificate is for no host at all")
    }

    @Test("says since when a certificate has expired")
    func expired() async throws {
        let error = try await failure(try await server(["DNS:localhost"], days: -9 ... -3))
        #expect(error.kind == .certificate)
        #expect(error.detail.hasPrefix("certificate has expired (on 20"))
    }

    @Test("says from when on a certificate will be valid")
    func notYetValid() async throws {
        let error = try await failure(try await server(["DNS:localhost"], days: 2...5))
        #expect(error.kind == .certificate)
        #expect(error.detail.hasPrefix("certificate is not yet valid (before 20"))
    }

    @Test("names the authority that is not trusted, and where it was looked for")
    func untrusted() async throws {
        let other = try CertificateMint(name: "Other CA", in: folder)
        let error = try await failure(try await server(["DNS:localhost"]), trust: other.file)
        #expect(error.kind == .certificate)
        #expect(
            error.detail
                == "unable to get local issuer certificate: issuer /CN=Test CA is not in \(other.file)"
        )
    }

    @Test("refuses a self-made certificate even when it is for the right host")
    func systemStore() async throws {
        let server = try await server(["DNS:localhost"])
        let error = await #expect(throws: TLSError.self) {
            _ = try await TLSClient.exchange(
                "hi\r\n\r\n", port: server.port, trust: .system, host: "localhost")
        }
        #expect(error?.kind == .certificate)
        #expect(error?.detail.contains("issuer /CN=Test CA is not in ") == true)
    }

    @Test("tells a stream that ended from one that was cut off")
    func truncation() async throws {
        let server = try await server(["DNS:localhost"]) { _, _ in .init("hel", then: .cut) }
        let error = try await failure(server)
        #expect(error.kind == .truncated)
    }

    @Test("says that the peer does not speak TLS")
    func plainPeer() async throws {
        let listening = try ListeningDescriptor(
            try #require(SocketAddress(literal: "127.0.0.1", port: 0)), isShared: false)
        let port = try #require(listening.address.port)
        let peer = try TestLoop()
        async let answered: Void = peer.run { peer in
            let waiter = Waiter(loop: peer.loop)
            let listener = try ListeningSocket(listening, loop: peer.loop, waiter: waiter)
            while true {
                if let (socket, _) = try listener.accept() {
                    let text = Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)
                    _ = try text.withUnsafeBytes { bytes throws(Errno) in try socket.write(bytes) }
                    return
                }
                _ = await waiter.wait()
            }
        }
        let error = await #expect(throws: TLSError.self) {
            _ = try await TLSClient.exchange(
                "hi", port: port, trust: .certificates(inFile: mint.file), host: "localhost")
        }
        try await answered
        #expect(error?.kind == .negotiation)
        #expect(
            error?.detail
                == "the peer does not speak TLS on this port (wrong version number)")
    }

    @Test("a handshake ends at its deadline when the peer is silent")
    func silentPeer() async throws {
        // It waits for a request in plain text that never comes.
        let server = try await ScriptedServer.start { _, _ in nil }
        let error = try await failure(server, patience: .milliseconds(100))
        #expect(error.kind == .timedOut)
    }

    @Test("carries more than any buffer holds, both ways")
    func longTransfer() async throws {
        let answer = String(repeating: "0123456789abcdef", count: 200_000)
        let request = String(repeating: "fedcba9876543210", count: 25_000) + "\r\n\r\n"
        let server = try await server(["DNS:localhost"]) { _, _ in .init(answer) }
        let received = try await TLSClient.exchange(
            request, port: server.port, trust: .certificates(inFile: mint.file), host: "localhost")
        #expect(received == answer)
        #expect(await server.requests == [request])
    }

    @Test(
        "names the file of trusted certificates that cannot be used, and why",
        arguments: [
            (nil, "cannot read FILE: No such file or directory"),
            ("", "there is no certificate in PEM format in FILE"),
            ("no certificate\n", "there is no certificate in PEM format in FILE"),
            (
                "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydA==\n-----END CERTIFICATE-----\n",
                "certificate 1 in FILE is damaged: "
            ),
        ])
    func badTrustFile(content: String?, message: String) throws {
        let path = folder.path(of: "ca.pem")
        if let content { try folder.write(content, to: "ca.pem") }
        let error = #expect(throws: TLSError.self) {
            _ = try TLSContext.client(trust: .certificates(inFile: path))
        }
        #expect(error?.kind == .configuration)
        #expect(
            error?.detail.hasPrefix(message.replacing("FILE", with: path)) == true,
            "\(error?.detail ?? "")")
    }

    @Test("a server says which of its files is wrong")
    func badServerFiles() throws {
        let identity = try mint.issue(["DNS:localhost"])
        let other = try mint.issue(["DNS:localhost"])
        let missing = folder.path(of: "missing.pem")
        let noCertificate = #expect(throws: TLSError.self) {
            _ = try TLSContext.server(certificate: missing, key: identity.key)
        }
        #expect(noCertificate?.detail.contains(missing) == true)
        let otherKey = #expect(throws: TLSError.self) {
            _ = try TLSContext.server(certificate: identity.certificate, key: other.key)
        }
        #expect(otherKey?.detail == "cannot use key \(other.key): key values mismatch")
    }
}
