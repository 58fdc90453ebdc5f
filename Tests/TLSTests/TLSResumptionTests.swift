import Reactor
import TestKit
import Testing

@testable import TLS

/// Sessions of connections that we open.
@Suite("TLS resumption", .timeLimit(.minutes(1)))
struct TLSResumptionTests {
    private static let host = "api.internal"

    let folder: TemporaryFolder
    let mint: CertificateMint

    init() throws {
        folder = try TemporaryFolder()
        mint = try CertificateMint(in: folder)
    }

    private func server(days: ClosedRange<Int> = -1...5) throws -> TLSServer {
        let files = CertificateFiles(
            try mint.issue(["DNS:\(Self.host)", "DNS:other.internal"], days: days))
        return try TLSServer(TLSServerSettings(certificates: [files]), tickets: TicketKeys())
    }

    private func client() throws -> TLSContext {
        try TLSContext.client(trust: .certificates(inFile: mint.file))
    }

    /// Handshakes of connections that begin together, and what comes behind each; which of them
    /// went on with an earlier session.
    private func connect(
        _ count: Int, _ server: TLSServer, _ client: TLSContext, _ resumption: TLSResumption,
        host: String = host
    ) async throws -> [Bool] {
        // Safe: the test waits here, so the loop's thread is the only one that uses it.
        nonisolated(unsafe) let resumption = resumption
        let resident = try TestLoop()
        return try await resident.run { resident in
            let waiter = Waiter(loop: resident.loop)
            var pairs: [TLSPair] = []
            for _ in 0..<count {
                pairs.append(
                    try await TLSPair(
                        server, client, host: host, resumption: resumption,
                        loop: resident.loop, waiter: waiter))
            }
            var resumed: [Bool] = []
            for pair in pairs {
                let (near, far) = (pair.near, pair.far)
                try await pair.handshake()
                // Tickets come behind the handshake, and are taken with what else is read.
                let word = Array("hello".utf8)
                _ = try word.withUnsafeBytes { bytes in try far.write(bytes) }
                let buffer = ByteBuffer(capacity: 64)
                while case .wouldBlock = try near.read(into: buffer) {
                    _ = await waiter.wait(until: resident.loop.now.advanced(by: .seconds(5)))
                }
                near.finishWriting()
                let isResumed = try #require(near.session).isResumed
                #expect(far.session?.isResumed == isResumed)
                resumed.append(isResumed)
            }
            return resumed
        }
    }

    private func connect(
        _ server: TLSServer, _ client: TLSContext, _ resumption: TLSResumption,
        host: String = host
    ) async throws -> Bool {
        try await connect(1, server, client, resumption, host: host) == [true]
    }

    @Test("every connection after the first goes on with a session")
    func resumes() async throws {
        let (server, client, resumption) = (try server(), try client(), TLSResumption())
        var resumed: [Bool] = []
        for _ in 0..<5 { resumed.append(try await connect(server, client, resumption)) }
        #expect(resumed == [false, true, true, true, true])
    }

    @Test("a ticket is used once: of more connections than there are tickets some begin anew")
    func usesTicketsOnce() async throws {
        let (server, client, resumption) = (try server(), try client(), TLSResumption())
        _ = try await connect(server, client, resumption)
        let tickets = resumption.count
        let resumed = try await connect(tickets + 2, server, client, resumption)
        #expect(tickets > 0 && resumed.count(where: \.self) == tickets)
    }

    @Test("neither another name nor another context, as after a reload, goes on with a session")
    func isBound() async throws {
        let (server, client, resumption) = (try server(), try client(), TLSResumption())
        _ = try await connect(server, client, resumption)
        #expect(try await connect(server, client, resumption, host: "other.internal") == false)
        #expect(try await connect(server, client, resumption, host: "other.internal"))
        let reloaded = try self.client()
        #expect(try await connect(server, reloaded, resumption, host: "other.internal") == false)
        #expect(try await connect(server, reloaded, resumption, host: "other.internal"))
    }

    @Test("an hour after a look at the certificate there is another, whatever came between")
    func expires() async throws {
        let clock = TestClock()
        let resumption = TLSResumption { clock.seconds }
        let (server, client) = (try server(), try client())
        _ = try await connect(server, client, resumption)
        clock.seconds += TLSResumption.longestTrust / 2
        #expect(try await connect(server, client, resumption))
        // Tickets of the connection that was resumed are no younger than its first one.
        clock.seconds += TLSResumption.longestTrust / 2
        #expect(try await connect(server, client, resumption) == false)
    }

    @Test("a certificate that has expired ends its sessions")
    func certificateExpires() async throws {
        let clock = TestClock()
        let resumption = TLSResumption { clock.seconds }
        let (server, client) = (try server(), try client())
        // The certificate is good for five days: at the end of them no hour is left.
        clock.seconds += 5 * 86_400 - 60
        _ = try await connect(server, client, resumption)
        #expect(try await connect(server, client, resumption))
        clock.seconds += 61
        #expect(try await connect(server, client, resumption) == false)
    }

    @Test("no more sessions are kept than connections may be opened in a moment")
    func isBounded() async throws {
        let (server, client, resumption) = (try server(), try client(), TLSResumption())
        // Each brings tickets.
        _ = try await connect(TLSResumption.capacity + 1, server, client, resumption)
        #expect(resumption.count == TLSResumption.capacity)
    }
}

private final class TestClock {
    var seconds = wallSeconds()
}
