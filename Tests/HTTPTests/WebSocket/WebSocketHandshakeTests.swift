import HTTP
import TestKit
import Testing

@Suite("WebSocket handshakes")
struct WebSocketHandshakeTests {
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    private static let accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

    @Test("a key is answered as in RFC 6455, section 1.3")
    func accept() {
        let key = Array(Self.key.utf8)
        #expect(WebSocketHandshake.accept(of: key.span) == Array(Self.accept.utf8))
    }

    @Test("a key of our own is 16 bytes in base64, and never the same")
    func makeKey() {
        let keys = (0..<50).map { _ in WebSocketHandshake.makeKey() }
        #expect(Set(keys).count == 50)
        for key in keys {
            #expect(key.count == WebSocketHandshake.keyLength)
            #expect(key.suffix(2).elementsEqual("==".utf8) && !key.dropLast(2).contains(0x3D))
        }
    }

    @Test(
        "W6: only 101 with Upgrade: websocket and the answer to the key opens a WebSocket",
        arguments: [
            Case("101|Upgrade: websocket|ACCEPT", true),
            Case("101|upgrade: WebSocket|ACCEPT", true),
            Case("200|Upgrade: websocket|ACCEPT", false), Case("101|ACCEPT", false),
            Case("101|Upgrade: h2c|ACCEPT", false),
            Case("101|Upgrade: websocket, h2c|ACCEPT", false),
            Case("101|Upgrade: websocket|Upgrade: websocket|ACCEPT", false),
            Case("101|Upgrade: websocket", false),
            Case("101|Upgrade: websocket|Sec-WebSocket-Accept: ", false),
            Case(
                "101|Upgrade: websocket|Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=", false),
            Case("101|Upgrade: websocket|ACCEPT|ACCEPT", false),
        ])
    func opens(_ row: Case<Bool>) throws {
        let accept = "Sec-WebSocket-Accept: \(Self.accept)"
        let lines = row.input.split(separator: "|").map { $0 == "ACCEPT" ? accept : String($0) }
        let text = "HTTP/1.1 " + lines.joined(separator: "\r\n") + "\r\n\r\n"
        let bytes = Array(text.utf8)
        var parser = ResponseParser(limits: HeadLimits())
        var head = ResponseHead()
        let isWhole = try parser.parse(bytes.span, requestMethod: .get, into: &head)
        let key = Array(Self.key.utf8)
        #expect(isWhole && head.opensWebSocket(bytes.span, key: key.span) == row.expected)
    }
}
