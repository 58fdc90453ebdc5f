import HTTP
import TestKit
import Testing

@Suite("Connection options")
struct ConnectionTests {
    @Test(
        "A connection lasts as version and options say",
        arguments: [
            Case("HTTP/1.1", true), Case("HTTP/1.1|Connection: close", false),
            Case("HTTP/1.1|Connection: CLOSE", false),
            Case("HTTP/1.1|Connection: keep-alive", true),
            Case("HTTP/1.1|Connection: keep-alive, close", false),
            Case("HTTP/1.1|Connection: keep-alive|Connection: , close,", false),
            Case("HTTP/1.1|Proxy-Connection: close", true), Case("HTTP/1.0", false),
            Case("HTTP/1.0|Connection: Keep-Alive", true),
            Case("HTTP/1.0|Connection: keep-alive, close", false),
        ])
    func persists(_ row: Case<Bool>) throws {
        var lines = row.input.split(separator: "|").map(String.init)
        lines.insert("Host: a", at: 1)
        let request = "GET / " + lines.joined(separator: "\r\n") + "\r\n\r\n"
        #expect(try verdict(request).accepted().isPersistent == row.expected)
    }

    @Test("Fields about this connection are marked, whether nominated or not")
    func marksHopByHop() throws {
        let names = [
            "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Upgrade", "HTTP2-Settings",
            "Proxy-Authorization", "Proxy-Authenticate",
        ]
        let request = try verdict(
            head("GET / HTTP/1.1", names.map { "\($0): a" }.joined(separator: "\r\n"))
        )
        .accepted()
        for name in names { #expect(request.line(name)?.isHopByHop == true, "\(name)") }
        #expect(request.line("Host")?.isHopByHop == false)
    }

    @Test("Connection nominates fields that the proxy knows nothing about")
    func nominates() throws {
        let request = try verdict(
            head(
                "GET / HTTP/1.1", "X-One: 1", "Connection: x-one , X-TWO", "x-two: 2", "x-three: 3")
        ).accepted()
        #expect(request.line("X-One")?.isHopByHop == true)
        #expect(request.line("x-two")?.isHopByHop == true)
        #expect(request.line("x-three")?.isHopByHop == false)
    }

    @Test(
        "H4: Connection cannot take away what the proxy or a policy relies on",
        arguments: [
            "X-Firebase-AppCheck", "X-Forwarded-For", "X-Forwarded-Prefix", "Forwarded",
            "X-AppCheck-Verdict", "X_AppCheck_Verdict", "Cookie", "Authorization", "Via",
            "X-Request-Id", "traceparent", "Origin", "Content-Type", "User-Agent", "Trailer",
            "Expect", "Access-Control-Request-Method", "Date",
        ])
    func protectsFields(_ name: String) throws {
        let value = name == "Expect" ? "100-continue" : "a"
        let request = try verdict(
            head("GET / HTTP/1.1", "\(name): \(value)", "Connection: \(name.lowercased())")
        ).accepted()
        #expect(request.line(name)?.isHopByHop == false)
    }

    @Test(
        "H4: nominating routing or framing is refused",
        arguments: ["Host", "content-length", "Transfer-Encoding", "close, HOST"])
    func refusesNominations(_ option: String) {
        let request = head("GET / HTTP/1.1", "Connection: \(option)")
        #expect(verdict(request) == .malformed(.connection))
    }

    @Test(
        "Options must be tokens, and not too many",
        arguments: ["\"close\"", "close;a", "close x", "a, (b)", "clos\u{E9}"])
    func refusesOddOptions(_ value: String) {
        #expect(verdict(head("GET / HTTP/1.1", "Connection: \(value)")) == .malformed(.connection))
    }

    @Test("The number of options is bounded over all lines")
    func boundsOptions() throws {
        let sixteen = "Connection: " + (0..<16).map { "a\($0)" }.joined(separator: ",")
        #expect(try verdict(head("GET / HTTP/1.1", sixteen, sixteen)).accepted().isPersistent)
        let request = head("GET / HTTP/1.1", sixteen, sixteen, "Connection: b")
        #expect(verdict(request) == .malformed(.connection))
    }

    @Test(
        "W7: only a plain WebSocket handshake asks for an upgrade",
        arguments: [
            Case("GET / HTTP/1.1|Connection: Upgrade|Upgrade: websocket", true),
            Case("GET / HTTP/1.1|Connection: keep-alive, upgrade|Upgrade: WebSocket", true),
            Case("GET / HTTP/1.1|Upgrade: websocket", false),
            Case("GET / HTTP/1.1|Connection: Upgrade", false),
            Case("GET / HTTP/1.1|Connection: Upgrade|Upgrade: h2c", false),
            Case("GET / HTTP/1.1|Connection: Upgrade|Upgrade: websocket, h2c", false),
            Case("GET / HTTP/1.1|Connection: Upgrade|Upgrade: websocket|Upgrade: h2c", false),
            Case("GET / HTTP/1.0|Connection: Upgrade|Upgrade: websocket", false),
            Case("POST / HTTP/1.1|Connection: Upgrade|Upgrade: websocket", false),
            Case("GET / HTTP/1.1|Connection: Upgrade|Upgrade: websocket|NO KEY", false),
            Case("GET / HTTP/1.1|Connection: Upgrade|Upgrade: websocket|TWO KEYS", false),
            Case("GET / HTTP/1.1|Connection: Upgrade|Upgrade: websocket|SHORT KEY", false),
            Case("GET / HTTP/1.1|Connection: Upgrade|Upgrade: websocket|Content-Length: 1", false),
        ])
    func recognisesWebSocket(_ row: Case<Bool>) throws {
        let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        let keys =
            switch true {
            case row.input.hasSuffix("NO KEY"): [String]()
            case row.input.hasSuffix("TWO KEYS"): [key, key]
            case row.input.hasSuffix("SHORT KEY"): ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ="]
            default: [key]
            }
        let lines = row.input.split(separator: "|").map(String.init)
            .filter { !$0.hasSuffix("KEY") && !$0.hasSuffix("KEYS") }
        let request = (lines + keys + ["Host: a"]).joined(separator: "\r\n") + "\r\n\r\n"
        #expect(try verdict(request).accepted().wantsWebSocket == row.expected)
    }

    @Test(
        "Trailers are acceptable when TE lists them",
        arguments: [
            Case("trailers", true), Case("Trailers", true), Case("deflate;q=0.5, trailers", true),
            Case("deflate", false), Case("", false), Case("trailers2", false),
            Case("trailers;q=0", false), Case(",,trailers", true),
        ])
    func readsTE(_ row: Case<Bool>) throws {
        let request = try verdict(head("GET / HTTP/1.1", "TE: \(row.input)")).accepted()
        #expect(request.acceptsTrailers == row.expected)
    }

    @Test("Expect is 100-continue with a body, or refused with 417")
    func readsExpectation() throws {
        let length = "Content-Length: 1"
        #expect(
            try verdict(head("PUT / HTTP/1.1", "Expect: 100-Continue", length)).accepted()
                .expectsContinue)
        #expect(
            try !verdict(head("PUT / HTTP/1.1", "Expect: 100-continue")).accepted().expectsContinue)
        #expect(
            try !verdict(head("PUT / HTTP/1.0", "Expect: 100-continue", length)).accepted()
                .expectsContinue)
        #expect(
            try !verdict(head("PUT / HTTP/1.0", "Expect: x", length)).accepted().expectsContinue)
        for value in ["", "200-ok", "100-continue, x", "100-continue;a"] {
            let request = head("PUT / HTTP/1.1", "Expect: \(value)", length)
            #expect(verdict(request) == .malformed(.expectation))
        }
        #expect(MalformedMessage(.expectation).status == 417)
    }
}
