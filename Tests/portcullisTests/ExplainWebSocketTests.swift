import TestKit
import Testing

@testable import portcullis

@Suite("portcullis explain, of WebSocket handshakes")
struct ExplainWebSocketTests {
    private static func explain(
        place: String, upstream: String = "http/1.1", _ fields: String...
    ) -> Transcript {
        let configuration = OneRouteFile.text(
            project: "id = \"pid\"\njwks = \"keys.json\"", named: "feed", path: "/feed",
            route: "app_check = \"enforce\"\nwebsocket_token = \"\(place)\""
        ).replacing("[upstream.api]", with: "[upstream.api]\nprotocol = \"\(upstream)\"")
        return Transcript(
            ["explain", "-c", "proxy.conf", "GET", "https://api.example.com/feed"]
                + fields.flatMap { ["-H", $0] },
            files: [
                "proxy.conf": configuration, "keys.json": TestIssuer.keySetJSON(of: [.standard]),
            ])
    }

    private static let upgrade = ["Connection: Upgrade", "Upgrade: websocket"]
    private static let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="

    @Test(
        "H7: a token among the subprotocols counts where the route takes it, and is not shown",
        arguments: [("protocol", "verified"), ("header", "missing")])
    func subprotocol(place: String, verdict: String) {
        let token = TestIssuer.standard.token()
        let run = Self.explain(
            place: place, Self.upgrade[0], Self.upgrade[1], Self.key,
            "Sec-WebSocket-Protocol: chat, appcheck.\(token)")
        #expect(run.text.contains("verdict     \(verdict)"))
        for part in token.split(separator: ".").dropFirst() {
            #expect(!run.text.contains(part))
        }
    }

    @Test(
        "before a backend of HTTP/2 a handshake depends on what the servers offer",
        arguments: [
            ("http/1.1", "is forwarded to api"),
            (
                "h2c",
                "is forwarded to api if its servers offer WebSockets over h2c (RFC 8441), "
                    + "else refused: 501 websocket_not_supported"
            ),
        ])
    func multiplexed(upstream: String, result: String) {
        let run = Self.explain(
            place: "header", upstream: upstream, Self.upgrade[0], Self.upgrade[1], Self.key,
            "Sec-WebSocket-Version: 13", "X-Firebase-AppCheck: \(TestIssuer.standard.token())")
        #expect(run.text.hasSuffix(result))
    }

    @Test("what is no handshake has no token there, and two tokens are too many")
    func others() {
        let token = TestIssuer.standard.token()
        let entry = "Sec-WebSocket-Protocol: chat, appcheck.\(token)"
        let plain = Self.explain(place: "protocol", entry)
        #expect(plain.text.contains("verdict     missing"))
        let twice = Self.explain(
            place: "protocol", Self.upgrade[0], Self.upgrade[1], Self.key, entry,
            "X-Firebase-AppCheck: \(token)")
        #expect(twice.text.contains("verdict     invalid, reason duplicate"))
    }
}
