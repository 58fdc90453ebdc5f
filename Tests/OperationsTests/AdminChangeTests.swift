import Configuration
import FoundationEssentials
import HTTP
import Proxy
import Reactor
import Synchronization
import TestKit
import Testing

@testable import Operations

private let word = "0123456789abcdef-the-token"

/// Remembers what it was asked to do.
private final class Recorder: AdminControl {
    private let wishes = Mutex<[String]>([])

    var all: [String] { wishes.withLock { $0 } }

    func status() async -> StatusReport {
        StatusReport(
            process: .init(
                version: "1", pid: 1, startedAt: "", uptimeSeconds: 0, phase: "serving",
                ready: true, loops: 0),
            configuration: .init(file: "f", loadedAt: ""))
    }

    func setDraining(_ isDraining: Bool, server: String, upstream: String, client: String) async
        -> ServerChangeResult
    {
        wishes.withLock { $0.append("\(isDraining) \(upstream) \(server) \(client)") }
        switch upstream {
        case "api":
            return .done(
                ServerChange(
                    upstream: upstream, server: server, addresses: [server],
                    state: isDraining ? .draining : .ready, isChanged: true, inFlight: 0,
                    serversLeft: 1, silentLoops: 0))
        case "other": return .unknownServer(known: ["a:1", "b:2"])
        default: return .unknownUpstream(known: (1...12).map { "u\($0)" })
        }
    }
}

@Suite("Changes through the admin listener")
struct AdminChangeTests {
    private func makeAccess(_ token: String?, file: String? = "/run/token") -> AdminAccess {
        let access = AdminAccess()
        access.adopt(
            Admin(
                listen: .tcp(host: "127.0.0.1", port: 1), tokenFile: file,
                token: token.flatMap(AdminToken.init)))
        return access
    }

    private func answer(_ request: AdminRequest, _ access: AdminAccess, _ control: Recorder)
        async
        throws -> AdminAnswer
    {
        let log = try LogWriter { _ in [] }
        let pages = AdminPages(
            metrics: MetricsPage(
                version: "1", loops: [], log: log, reloads: ReloadStatus(), keySets: { [] }),
            readiness: Readiness { [] }, access: access, control: control, events: EventRecorder())
        return await pages.answer(request)
    }

    private func post(_ path: String, _ authorization: AdminRequest.Authorization) -> AdminRequest {
        var request = AdminRequest(.post, path)
        request.authorization = authorization
        request.client = "192.0.2.1:5"
        return request
    }

    @Test("a path names an upstream and a server, whatever the address looks like")
    func paths() {
        let good: [(String, String, String, Bool)] = [
            ("/upstreams/api/servers/127.0.0.1:9000/drain", "api", "127.0.0.1:9000", true),
            ("/upstreams/api/servers/127.0.0.1:9000/undrain", "api", "127.0.0.1:9000", false),
            ("/upstreams/a.b-c_d/servers/%5B::1%5D:9/drain", "a.b-c_d", "[::1]:9", true),
            ("/upstreams/api/servers/unix:/run/a/b.sock/drain", "api", "unix:/run/a/b.sock", true),
            ("/upstreams/api/servers/unix:/drain/drain", "api", "unix:/drain", true),
        ]
        for (path, upstream, server, isDraining) in good {
            let change = ServerChangePath(path)
            #expect(change?.upstream == upstream && change?.server == server, "\(path)")
            #expect(change?.isDraining == isDraining)
        }
        let bad = [
            "", "/", "/upstreams", "/upstreams/api/servers/drain", "/upstreams//servers/a:1/drain",
            "/upstreams/api/servers//drain", "/upstreams/api/server/a:1/drain",
            "/upstreams/api/servers/a:1", "/upstreams/api/servers/a:1/drain/",
            "/upstreams/api/servers/a:1/Drain", "/x/upstreams/api/servers/a:1/drain",
            "/upstreams/api/servers/%/drain", "/upstreams/api/servers/%4/drain",
            "/upstreams/api/servers/%zz/drain", "/upstreams/api/servers/%FF/drain",
            "/upstreams/%2/servers/a:1/drain",
        ]
        for path in bad { #expect(ServerChangePath(path) == nil, "\(path)") }
    }

    @Test("reads one bearer token, and nothing else, out of a request")
    func authorization() throws {
        let table: [(String, AdminRequest.Authorization)] = [
            ("", .none), ("Authorization: Bearer abc\r\n", .bearer(Array("abc".utf8))),
            ("authorization: BEARER   abc\r\n", .bearer(Array("abc".utf8))),
            ("Authorization: Basic abc\r\n", .unusable), ("Authorization: Bearer\r\n", .unusable),
            ("Authorization:\r\n", .unusable), ("Authorization: Bearerabc\r\n", .unusable),
            ("Authorization: Bearer a\r\nAuthorization: Bearer a\r\n", .unusable),
            ("Authorization: Bearer a b\r\n", .bearer(Array("a b".utf8))),
        ]
        for (fields, expected) in table {
            let text = "POST /x?token=t HTTP/1.1\r\nHost: LOCALHOST:1\r\n\(fields)\r\n"
            let bytes = Array(text.utf8)
            var parser = RequestParser(limits: HeadLimits(bytes: 4096, fields: 10))
            var head = RequestHead()
            #expect(try parser.parse(bytes.span, into: &head))
            let request = AdminRequest(head, in: bytes.span, client: "c")
            #expect(request.authorization == expected, "\(fields)")
            #expect((request.path, request.host, request.client) == ("/x", "localhost", "c"))
        }
    }

    @Test(
        "knows hosts that no page can have led here",
        arguments: [
            ("localhost", true), ("a.localhost", true), ("127.0.0.1", true), ("[::1]", true),
            ("10.0.0.1", true), ("", true), ("example.com", false),
            ("localhost.example.com", false),
            ("127.0.0.1.example.com", false),
            ("notlocalhost", false), ("1a", false),
        ])
    func hosts(_ host: String, _ isNamedDirectly: Bool) {
        var request = AdminRequest(.get, "/metrics")
        request.host = host
        #expect(request.isNamedDirectly == isNamedDirectly)
    }

    @Test("only the token lets a change through, and what was asked for is done")
    func token() async throws {
        let (control, access) = (Recorder(), makeAccess(word))
        let path = "/upstreams/api/servers/a:1/drain"
        for (authorization, status) in [
            (.none, 401), (.unusable, 401), (.bearer([]), 401), (.bearer(Array(word.utf8)), 200),
            (.bearer(Array(word.dropLast().utf8)), 401), (.bearer(Array((word + "x").utf8)), 401),
        ] as [(AdminRequest.Authorization, UInt16)] {
            let answer = try await answer(post(path, authorization), access, control)
            #expect(answer.status == status)
            #expect((answer.challenge != nil) == (status == 401))
        }
        #expect(control.all == ["true api a:1 192.0.2.1:5"])
        #expect(access.total(.unauthorized) == 5 && access.total(.done) == 1)
    }

    @Test("names what there is when something is not")
    func unknown() async throws {
        let right = AdminRequest.Authorization.bearer(Array(word.utf8))
        let (control, access) = (Recorder(), makeAccess(word))
        var answer = try await answer(
            post("/upstreams/other/servers/c:3/drain", right), access, control)
        #expect(answer.status == 404)
        #expect(String(decoding: answer.body, as: UTF8.self).contains("it has a:1, b:2"))
        answer = try await self.answer(
            post("/upstreams/x/servers/c:3/drain", right), access, control)
        #expect(String(decoding: answer.body, as: UTF8.self).contains("u9, u10, …"))
    }

    @Test("without a token nobody changes anything, and the answer says why")
    func readOnly() async throws {
        let control = Recorder()
        let path = "/upstreams/api/servers/a:1/drain"
        let right = AdminRequest.Authorization.bearer(Array(word.utf8))
        let cases: [(String?, String)] = [
            (nil, "token_file of [admin]"), ("/run/t", "/run/t, which could not"),
        ]
        for (file, phrase) in cases {
            let answer = try await answer(post(path, right), makeAccess(nil, file: file), control)
            #expect(answer.status == 403 && answer.challenge == nil)
            #expect(String(decoding: answer.body, as: UTF8.self).contains(phrase))
        }
        #expect(control.all == [])
    }

    @Test("wrong tokens are bounded, right ones are not, and time makes up for them")
    func bounded() {
        let access = makeAccess(word)
        let start = MonotonicInstant(nanoseconds: 1_000_000_000_000)
        let wrong = AdminRequest.Authorization.bearer(Array("wrong".utf8))
        for _ in 0..<10 { #expect(access.judge(wrong, at: start) == .wrong(unreported: 0)) }
        #expect(access.judge(wrong, at: start) == .throttled(seconds: 6))
        let soon = start.advanced(by: .seconds(3))
        #expect(access.judge(.unusable, at: soon) == .throttled(seconds: 3))
        #expect(access.judge(.bearer(Array(word.utf8)), at: start) == .granted)
        #expect(access.judge(.none, at: start) == .missing)
        #expect(access.judge(wrong, at: start.advanced(by: .seconds(7))) == .wrong(unreported: 2))
        #expect(access.judge(wrong, at: start.advanced(by: .seconds(8))) == .throttled(seconds: 5))
        let hourLater = start.advanced(by: .seconds(3600))
        #expect(access.judge(wrong, at: hourLater) == .wrong(unreported: 1))
        // A reload takes over another token.
        access.adopt(
            Admin(
                listen: .unix(path: "/x"), tokenFile: "f", token: AdminToken("another-token-012")))
        #expect(access.judge(.bearer(Array(word.utf8)), at: hourLater) == .wrong(unreported: 0))
        #expect(access.judge(.bearer(Array("another-token-012".utf8)), at: hourLater) == .granted)
    }
}
