import Replay
import TestKit
import Testing

@Suite("The way into a Redis server", .enabled(if: RedisServer.isInstalled))
struct RedisAccessTests {
    private static let user =
        "user claims on >right ~portcullis:* +set +get +time +info +select +client|setname"

    @Test("a user with a password claims; a wrong or missing one is denied, and said without it")
    func passwords() async throws {
        let server = try await RedisServer([Self.user + " +eval +del", "user default off"])
        var settings = RedisSettings.single(server)
        settings.username = "claims"
        settings.password = "right"
        try await withCaller(settings) { caller in
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .claimed)
            #expect(await caller.release(token))
        }
        settings.password = "sesame-wrong"
        try await withCaller(settings) { caller in
            for _ in 0..<7 {
                #expect(await caller.claim(.fresh()) == .unavailable(.denied))
            }
            #expect(caller.events.text.contains("WRONGPASS"))
            #expect(caller.events.text.contains("check user and password"))
            #expect(!caller.events.text.contains("sesame-wrong"))
        }
        settings.password = nil
        try await withCaller(settings) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.denied))
        }
    }

    @Test("R9: without the permission for EVAL a claim stays, and release says so")
    func withoutEval() async throws {
        let server = try await RedisServer([Self.user])
        var settings = RedisSettings.single(server)
        settings.username = "claims"
        settings.password = "right"
        try await withCaller(settings) { caller in
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .claimed)
            #expect(await caller.release(token) == false)
            #expect(await caller.claim(token.again()) == .reused)
            #expect(await caller.claim(.fresh()) == .claimed)
            #expect(caller.events.text.contains("does not take claims back"))
        }
    }

    @Test("without the permission for SET a claim is denied")
    func withoutSet() async throws {
        let server = try await RedisServer([Self.user.replacing("+set ", with: "")])
        var settings = RedisSettings.single(server)
        settings.username = "claims"
        settings.password = "right"
        try await withCaller(settings) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.denied))
        }
    }

    @Test("a socket in the file system is as good as a port")
    func unixSocket() async throws {
        let server = try await RedisServer()
        try await withCaller(RedisSettings(.single(.unix(path: server.socketPath)))) { caller in
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .claimed)
            #expect(await caller.claim(token.again()) == .reused)
            let clients = try server.cli("client", "list")
            #expect(clients.contains("name=portcullis"))
        }
        try await withCaller(RedisSettings(.single(.unix(path: "/nowhere/socket")))) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.unreachable))
        }
    }

    @Test("a name is looked up; one that does not exist is unreachable, and said")
    func names() async throws {
        let server = try await RedisServer()
        let local = RedisSettings(.single(.tcp(host: "localhost", port: server.port)))
        try await withCaller(local) { caller in
            #expect(await caller.claim(.fresh()) == .claimed)
        }
        let unknown = RedisSettings(.single(.tcp(host: "redis.invalid", port: 6379)))
        try await withCaller(unknown) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.unreachable))
            #expect(caller.events.text.contains("cannot resolve its name"))
        }
    }

    @Test("with TLS the certificate has to be from the CA and for the host")
    func tls() async throws {
        let folder = try TemporaryFolder()
        let mint = try CertificateMint(in: folder)
        let identity = try mint.issue(["DNS:localhost"])
        let port = try RedisServer.freePort()
        let server = try await RedisServer(
            port: port,
            [
                "port 0", "tls-port PORT", "tls-auth-clients no",
                "tls-ca-cert-file \"\(mint.file)\"",
                "tls-cert-file \"\(identity.certificate)\"",
                "tls-key-file \"\(identity.key)\"",
            ])
        var settings = RedisSettings(.single(.tcp(host: "localhost", port: server.port)))
        settings.isSecure = true
        settings.certificateAuthority = mint.file
        try await withCaller(settings) { caller in
            let token = Claim.fresh()
            #expect(await caller.claim(token) == .claimed)
            #expect(await caller.claim(token.again()) == .reused)
        }
        var otherHost = settings
        otherHost.topology = .single(.tcp(host: "127.0.0.1", port: server.port))
        try await withCaller(otherHost) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.tls))
        }
        var otherTrust = settings
        otherTrust.certificateAuthority = try CertificateMint(name: "Other CA", in: folder).file
        try await withCaller(otherTrust) { caller in
            #expect(await caller.claim(.fresh()) == .unavailable(.tls))
            #expect(caller.events.text.contains("TLS failed"))
        }
        var plain = settings
        plain.isSecure = false
        try await withCaller(plain) { caller in
            guard case .unavailable = await caller.claim(.fresh()) else {
                Issue.record("plain text on a TLS port")
                return
            }
        }
    }

    @Test("R4: our clock goes back an hour: tokens that the server may have dropped are expired")
    func clockGoesBack() async throws {
        let server = try await RedisServer()
        try await withCaller(.single(server)) { caller in
            // Constantly behind is fine…
            #expect(await caller.claim(.fresh(age: -3700, life: 300, clock: -3600)) == .claimed)
        }
        try await withCaller(.single(server)) { caller in
            let token = Claim.fresh(life: 1200)
            #expect(await caller.claim(token) == .claimed)
            // … a step is not, for tokens that ended more than five minutes ago.
            #expect(await caller.claim(.fresh(age: -3700, clock: -3600)) == .expired)
            #expect(await caller.claim(token.again(clock: -3600)) == .reused)
            #expect(await caller.claim(.fresh(life: 1200)) == .claimed)
            #expect(await caller.claim(.fresh(life: 300, clock: 3600)) == .claimed)
        }
    }
}
