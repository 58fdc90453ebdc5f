import Reactor
import TLS
import TestKit
import Testing

@Suite("TLS server", .timeLimit(.minutes(1)))
struct TLSServerTests {
    let folder: TemporaryFolder
    let mint: CertificateMint

    init() throws {
        folder = try TemporaryFolder()
        mint = try CertificateMint(in: folder)
    }

    private func files(_ names: [String]) throws -> CertificateFiles {
        CertificateFiles(try mint.issue(names))
    }

    /// What a handshake tells both ends.
    private func shake(
        _ server: TLSServer, _ client: TLSContext, host: String
    ) async throws -> (server: TLSSession, client: TLSSession) {
        try await TLSPair.with(server, client, host: host, on: try TestLoop()) { pair, _ in
            (try #require(pair.far.session), try #require(pair.near.session))
        }
    }

    /// Both ends of a connection after its handshake.
    private func withPair<R: Sendable>(
        _ body: @Sendable (TLSPair, Waiter) async throws -> R
    ) async throws -> R {
        let server = try TLSServer(
            TLSServerSettings(certificates: [try files(["DNS:localhost"])]), tickets: TicketKeys())
        let client = try TLSContext.client(trust: .certificates(inFile: mint.file))
        return try await TLSPair.with(server, client, on: try TestLoop(), body)
    }

    @Test(
        "shows the certificate for the name: exact, wildcard of one label, else the first",
        arguments: [
            ("a.example.com", 1), ("A.Example.COM", 1), ("b.example.com", 2), ("example.com", 0),
            ("x.b.example.com", 0), ("api.example.net", 0),
        ])
    func choice(host: String, index: Int) async throws {
        let listed = [
            try files([
                "DNS:default.example", "DNS:*.b.example.com", "DNS:api.example.net",
                "DNS:example.com",
            ]),
            try files(["DNS:a.example.com"]), try files(["DNS:*.example.com"]),
        ]
        let server = try TLSServer(
            TLSServerSettings(certificates: listed), tickets: TicketKeys())
        let client = try TLSContext.client(trust: .certificates(inFile: mint.file))
        let session = try await shake(server, client, host: host).server
        #expect(session.certificate?.files == listed[index])
        #expect(String(decoding: session.serverName, as: UTF8.self) == host.lowercased())
        #expect(server.certificate(for: host.utf8)?.files == listed[index])
    }

    @Test("a client that names no host gets the first certificate")
    func noName() async throws {
        let listed = [try files(["IP:127.0.0.1"]), try files(["DNS:a.example.com"])]
        let server = try TLSServer(
            TLSServerSettings(certificates: listed), tickets: TicketKeys())
        let client = try TLSContext.client(trust: .certificates(inFile: mint.file))
        let session = try await shake(server, client, host: "127.0.0.1").server
        #expect(session.certificate?.files == listed[0])
        #expect(session.serverName.isEmpty)
        #expect(session.client == nil)
        #expect("\(session.version)" == "TLSv1.3")
    }

    @Test("agrees on the first of its protocols that the client knows")
    func alpn() async throws {
        var settings = TLSServerSettings(certificates: [try files(["DNS:localhost"])])
        settings.protocols = ["first", "http/1.1"]
        let server = try TLSServer(settings, tickets: TicketKeys())
        let trust = TLSTrust.certificates(inFile: mint.file)
        let both = try TLSContext.client(trust: trust, protocols: ["http/1.1", "first"])
        let session = try await shake(server, both, host: "localhost")
        #expect(String(decoding: session.server.alpn, as: UTF8.self) == "first")
        #expect(session.client.alpn == session.server.alpn)
        let none = try TLSContext.client(trust: trust, protocols: ["other"])
        await #expect(throws: TLSError.self) {
            _ = try await shake(server, none, host: "localhost")
        }
        let silent = try TLSContext.client(trust: trust)
        #expect(try await shake(server, silent, host: "localhost").server.alpn.isEmpty)
    }

    @Test(
        "what a slow reader does not take is sent later, and the buffer of the loop is free at once"
    )
    func backPressure() async throws {
        let received = try await withPair { pair, waiter in
            let (near, far) = (pair.near, pair.far)
            let bytes = [UInt8](repeating: 7, count: 1 << 16)
            var written = 0
            // Until the socket is full: then nothing more is taken.
            while try far.flush() {
                guard case .bytes(let count) = try bytes.withUnsafeBytes({ try far.write($0) })
                else { break }
                written += count
                #expect(pair.scratch.isEmpty)
            }
            #expect(try bytes.withUnsafeBytes { try far.write($0) } == .wouldBlock)
            var count = 0
            let buffer = ByteBuffer(capacity: 40_000)
            while count < written {
                buffer.removeAll()
                if case .bytes(let more) = try near.read(into: buffer) {
                    count += more
                } else {
                    _ = try far.flush()
                    if !near.isReadable { _ = await waiter.wait() }
                }
            }
            #expect(try far.flush())
            #expect(try near.read(into: buffer) == .wouldBlock)
            #expect(near.isQuiet())
            #expect(count == written)
            far.close()
            while !near.isReadable { _ = await waiter.wait() }
            #expect(try near.read(into: buffer) == .endOfStream)
            return count
        }
        #expect(received > 1 << 16)
    }

    @Test("several records that came at once are all readable without another event")
    func bufferedRecords() async throws {
        try await withPair { pair, waiter in
            let (near, far) = (pair.near, pair.far)
            for _ in 0..<10 {
                _ = try [UInt8](repeating: 1, count: 10).withUnsafeBytes { try near.write($0) }
            }
            var count = 0
            // Room for less than a record: each read leaves something behind.
            let buffer = ByteBuffer(capacity: 64)
            while count < 100 {
                while !far.isReadable { _ = await waiter.wait() }
                buffer.removeAll()
                if case .bytes(let more) = try far.read(into: buffer) { count += more }
            }
            #expect(count == 100)
            #expect(try far.read(into: buffer) == .wouldBlock)
            #expect(!far.isReadable)
        }
    }

    @Test("knows a client by its certificate, and refuses one that others signed")
    func mutual() async throws {
        let clients = try CertificateMint(name: "Clients", in: folder)
        var settings = TLSServerSettings(certificates: [try files(["DNS:localhost"])])
        settings.clientCA = clients.file
        let server = try TLSServer(settings, tickets: TicketKeys())
        let trust = TLSTrust.certificates(inFile: mint.file)
        let good = try TLSContext.client(
            trust: trust, identity: CertificateFiles(try clients.issue([], usage: "clientAuth")))
        let identity = try #require(try await shake(server, good, host: "localhost").server.client)
        #expect(String(decoding: identity.subject, as: UTF8.self) == "CN=server 1")
        #expect(identity.fingerprint.count == 64)
        let stranger = try TLSContext.client(
            trust: trust, identity: CertificateFiles(try mint.issue([])))
        let error = await #expect(throws: TLSError.self) {
            _ = try await shake(server, stranger, host: "localhost")
        }
        #expect(error?.kind == .certificate)
        #expect(error?.detail.hasSuffix("issuer /CN=Test CA is not in \(clients.file)") == true)
        let nobody = try TLSContext.client(trust: trust)
        await #expect(throws: TLSError.self) {
            _ = try await shake(server, nobody, host: "localhost")
        }
    }
}

extension CertificateFiles {
    init(_ identity: CertificateMint.Identity) {
        self.init(certificate: identity.certificate, key: identity.key)
    }
}
