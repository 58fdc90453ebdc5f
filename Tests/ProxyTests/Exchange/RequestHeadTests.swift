import Attestation
import HTTP
import Policy
import TestKit
import Testing

@testable import Proxy

@Suite("The head that goes upstream")
struct RequestHeadTests {
    /// Without the line ends, which are the same everywhere.
    private func lines(_ head: String) -> [String] {
        head.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test("is the client's, but for what must not pass, and then our own")
    func whole() async throws {
        let head = try await RequestHeadRig().upstreamHead(
            of: "POST /v1/%61?b=c HTTP/1.1\r\nHost: API.example.com.:8080\r\nAccept: */*\r\n"
                + "Connection: keep-alive, x-hop\r\nX-Hop: 1\r\nContent-Length: 3\r\n"
                + "X-Firebase-AppCheck: a.b.c\r\nCookie: d=e\r\n\r\nabc")
        #expect(
            lines(head) == [
                "POST /v1/a?b=c HTTP/1.1", "Host: api.example.com:8080", "Accept: */*",
                "Cookie: d=e", "Content-Length: 3", "X-AppCheck-Verdict: missing",
                "X-AppCheck-Reason: unknown_origin", "X-AppCheck-Action: would_reject",
                "X-Request-Id: 0123456789abcdef", "X-Forwarded-For: 127.0.0.1",
                "X-Forwarded-Proto: http", "X-Forwarded-Host: api.example.com:8080",
                "Via: 1.1 portcullis", "", "",
            ])
    }

    @Test("tells what was found out about a verified token")
    func verified() async throws {
        var rig = RequestHeadRig()
        rig.verdict = .verified
        rig.token = VerifiedToken(
            project: 0, appID: TestIssuer.appID, app: 0, issuedAt: 1, expiresAt: 2, tokenID: nil,
            provider: nil, keyID: "k1")
        let head = try await rig.upstreamHead(of: "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        let ours = lines(head).filter { $0.hasPrefix("X-AppCheck") }
        #expect(
            ours == [
                "X-AppCheck-Verdict: verified", "X-AppCheck-App: ios",
                "X-AppCheck-App-Id: \(TestIssuer.appID)", "X-AppCheck-Action: allow",
            ])
    }

    @Test(
        "H2, H3: what only the proxy may say is gone, in any spelling",
        arguments: [
            "X-AppCheck-Verdict: verified", "x-appcheck-verdict: verified",
            "X_AppCheck_Verdict: verified", "X-AppCheck_App-Id: x", "X-AppCheck-Anything: x",
            "X_Request_Id: x", "X-Request-Id: x", "X_Forwarded_For: 10.0.0.1",
            "X-Forwarded-For: 10.0.0.1", "X-Forwarded-Host: evil.example",
            "X-Forwarded-Proto: https", "Forwarded: for=10.0.0.1", "X-Real-IP: 10.0.0.1",
            "X-Original-URL: /admin", "X-Rewrite-URL: /admin", "X_Firebase_AppCheck: a.b.c",
            "X-Firebase-AppCheck: a.b.c", "Proxy-Authorization: Basic x", "Keep-Alive: 1",
            "Upgrade: h2c", "HTTP2-Settings: x", "TE: gzip", "Proxy-Connection: close",
        ])
    func removed(field: String) async throws {
        let plain = try await RequestHeadRig().upstreamHead(
            of: "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        let head = try await RequestHeadRig().upstreamHead(
            of: "GET / HTTP/1.1\r\nHost: a\r\n\(field)\r\n\r\n")
        #expect(head == plain)
    }

    @Test("H6: a trusted proxy's forwarding fields are continued, and its request id is kept")
    func trusted() async throws {
        var rig = RequestHeadRig()
        rig.trustedProxies = [try #require(IPNetwork("127.0.0.0/8"))]
        let head = try await rig.upstreamHead(
            of: "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9, 10.0.0.1\r\n"
                + "X-Forwarded-Proto: https\r\nX-Forwarded-Host: b\r\nX-Request-Id: edge-1\r\n"
                + "Forwarded: for=203.0.113.9\r\nVia: 1.1 edge\r\n\r\n")
        #expect(
            lines(head).dropFirst(2).filter { !$0.hasPrefix("X-AppCheck") } == [
                "X-Request-Id: edge-1",
                "X-Forwarded-For: 203.0.113.9, 10.0.0.1, 127.0.0.1", "X-Forwarded-Proto: https",
                "X-Forwarded-Host: b", "Via: 1.1 edge", "Via: 1.1 portcullis", "", "",
            ])
    }

    @Test(
        "W4: says how long the body is in one way",
        arguments: [
            ("Content-Length: 0", ["Content-Length: 0"]), ("Accept: a", []),
            ("Content-Length: 12", ["Content-Length: 12"]),
            ("Transfer-Encoding: chunked", ["Transfer-Encoding: chunked"]),
            ("TE: trailers\r\nConnection: TE", ["TE: trailers", "Connection: TE"]),
            (
                "Content-Length: 1\r\nExpect: 100-continue",
                ["Content-Length: 1", "Expect: 100-continue"]
            ),
        ])
    func framing(fields: String, expected: [String]) async throws {
        let head = try await RequestHeadRig().upstreamHead(
            of: "PUT / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n")
        let names = ["Content-Length", "Transfer-Encoding", "TE:", "Connection", "Expect"]
        #expect(lines(head).filter { line in names.contains(where: line.hasPrefix) } == expected)
    }

    @Test("an old client's version shows in Via, and the target in absolute form loses its host")
    func oldVersion() async throws {
        let head = try await RequestHeadRig().upstreamHead(
            of: "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n")
        #expect(head.hasPrefix("GET /x HTTP/1.1\r\nHost: a.example\r\n"))
        let old = try await RequestHeadRig().upstreamHead(
            of: "OPTIONS * HTTP/1.0\r\nHost: b\r\n\r\n")
        #expect(old.hasPrefix("OPTIONS * HTTP/1.1\r\nHost: b\r\n"))
        #expect(old.hasSuffix("Via: 1.0 portcullis\r\n\r\n"))
    }

    @Test("a token goes upstream only where the route says so", arguments: [true, false])
    func token(forwards: Bool) async throws {
        var rig = RequestHeadRig()
        rig.route.forwardToken = forwards
        let head = try await rig.upstreamHead(
            of: "GET / HTTP/1.1\r\nHost: a\r\nX-Firebase-AppCheck: a.b.c\r\n\r\n")
        #expect(head.contains("X-Firebase-AppCheck: a.b.c\r\n") == forwards)
    }
}
