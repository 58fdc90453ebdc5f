import HTTP
import Testing

/// RFC 8441.
@Suite("WebSocket over HTTP/2")
struct HTTP2WebSocketTests {
    private static let connect = [
        (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"),
        (":path", "/chat?a=b"), (":authority", "h.example"),
    ]

    private static func open(_ fields: [(String, String)]) throws -> ServerUnderTest {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.headers(fields, endsStream: false))
        return server
    }

    @Test("a server announces extended CONNECT")
    func announces() throws {
        let server = try ServerUnderTest()
        let settings = try #require(server.sent().first { $0.type == 4 })
        // SETTINGS_ENABLE_CONNECT_PROTOCOL = 1.
        let entry: [UInt8] = [0, 8, 0, 0, 0, 1]
        let entries = stride(from: 0, to: settings.payload.count, by: 6).map {
            Array(settings.payload[$0..<min($0 + 6, settings.payload.count)])
        }
        #expect(entries.contains(entry))
    }

    @Test("a request for a WebSocket reads as the handshake of HTTP/1.1, with a key of our own")
    func handshake() throws {
        let server = try Self.open(
            Self.connect + [
                ("sec-websocket-version", "13"), ("sec-websocket-protocol", "chat, appcheck.t"),
                ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="), ("cookie", "a=b"),
                ("x-firebase-appcheck", "t"),
            ])
        let stream = try #require(server.requests.first)
        let text = stream.readAll().text
        let lines = text.split(separator: "\r\n").map(String.init)
        #expect(lines.first == "GET /chat?a=b HTTP/1.1")
        #expect(
            lines.dropFirst().filter { !$0.hasPrefix("Sec-WebSocket-Key: ") } == [
                "Host: h.example", "Cookie: a=b", "Connection: Upgrade", "Upgrade: websocket",
                "sec-websocket-version: 13", "sec-websocket-protocol: chat, appcheck.t",
                "x-firebase-appcheck: t",
            ])
        let bytes = Array(text.utf8)
        var parser = RequestParser(limits: HeadLimits())
        var head = RequestHead()
        let isWhole = try parser.parse(bytes.span, into: &head)
        #expect(isWhole && head.wantsWebSocket)
        #expect(!text.contains("dGhlIHNhbXBsZSBub25jZQ=="))
    }

    @Test(
        "W7: what is not quite a request for a WebSocket is reset, and nobody hears of it",
        arguments: [
            "another protocol", "its name in capitals", "GET", "no path", "no scheme",
            "no authority", "an absolute path", "a length", "an upgrade field", "another host",
        ])
    func refuses(_ fault: String) throws {
        var fields = Self.connect
        switch fault {
        case "another protocol": fields[1].1 = "connect-udp"
        case "its name in capitals": fields[1].1 = "WebSocket"
        case "GET": fields[0].1 = "GET"
        case "no path": fields.remove(at: 3)
        case "no scheme": fields.remove(at: 2)
        case "no authority": fields.remove(at: 4)
        case "an absolute path": fields[3].1 = "http://other.example/"
        case "a length": fields.append(("content-length", "5"))
        case "an upgrade field": fields.append(("upgrade", "websocket"))
        default: fields.append(("host", "other.example"))
        }
        let server = try ServerUnderTest()
        server.greet()
        let frames = server.exchange(RawFrames.headers(fields, endsStream: false))
        #expect(server.requests.isEmpty)
        #expect(frames.contains { $0.type == 3 || $0.type == 7 })
    }

    @Test("101 becomes 200 without the fields of the handshake, and DATA goes both ways")
    func opens() throws {
        let server = try Self.open(Self.connect)
        let stream = try #require(server.requests.first)
        _ = stream.readAll()
        stream.write(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                + "Sec-WebSocket-Protocol: chat\r\n\r\nfirst")
        let frames = server.sent()
        let head = try #require(frames.first { $0.type == 1 })
        // An index into the static table: `:status: 200` (RFC 7541, appendix A).
        #expect(head.payload.first == 0x88)
        let text = String(decoding: head.payload, as: UTF8.self)
        #expect(!text.contains("upgrade") && !text.contains("accept"))
        #expect(head.flags & 1 == 0)
        #expect(frames.first { $0.type == 0 }?.payload == Array("first".utf8))
        server.exchange(RawFrames.data(Array("second".utf8), endsStream: false))
        #expect(stream.readAll() == ("second", false))
        server.exchange(RawFrames.data([], endsStream: true))
        #expect(stream.readAll() == ("", true))
        stream.finishWriting()
        #expect(server.sent().contains { $0.type == 0 && $0.flags & 1 == 1 })
        #expect(server.session.streamCount == 0)
    }

    @Test("a tunnel that breaks is reset with CANCEL, as RFC 8441, section 5, has it")
    func breaks() throws {
        let server = try Self.open(Self.connect)
        let stream = try #require(server.requests.first)
        stream.write("HTTP/1.1 101 Switching Protocols\r\n\r\n")
        _ = server.sent()
        stream.resetOnClose()
        stream.close()
        let reset = try #require(server.sent().first { $0.type == 3 })
        #expect(reset.payload == RawFrames.bytes(8))
    }
}
