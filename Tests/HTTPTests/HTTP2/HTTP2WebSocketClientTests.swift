import HTTP
import Reactor
import Testing

/// RFC 8441 from the side that asks: the proxy before a server of HTTP/2.
@Suite("WebSocket towards a server of HTTP/2")
struct HTTP2WebSocketClientTests {
    private static let key = "dGhlIHNhbXBsZSBub25jZQ=="
    private static let handshake =
        "GET /chat?a=b HTTP/1.1\r\nHost: h.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\nX-A: b\r\n\r\n"

    /// A client that greeted a server with these settings, and read what the server answers.
    private final class Client {
        let session: HTTP2Session
        let now = MonotonicInstant(nanoseconds: 1)

        init(settings: [UInt8]) throws {
            session = try HTTP2Session(role: .client, limits: .upstream, now: now)
            _ = sent()
            try receive(RawFrames.frame(4, settings))
        }

        func receive(_ bytes: [UInt8]) throws {
            try session.receive(bytes.span, now: now)
        }

        func sent() -> [SentFrame] {
            let buffer = ByteBuffer(capacity: 1024)
            while session.produce(into: buffer, limit: 1 << 20) {}
            return SentFrame.read(buffer.withUnsafeBytes { Array($0) })
        }
    }

    /// SETTINGS_ENABLE_CONNECT_PROTOCOL = 1.
    private static let offer: [UInt8] = [0, 8, 0, 0, 0, 1]

    private static func ask() throws -> (client: Client, stream: HTTP2Stream) {
        let client = try Client(settings: offer)
        let stream = try #require(client.session.openStream())
        stream.write(handshake)
        return (client, stream)
    }

    @Test("whether the server takes WebSockets is known when its settings are")
    func offers() throws {
        let silent = try HTTP2Session(
            role: .client, limits: .upstream, now: MonotonicInstant(nanoseconds: 1))
        #expect(try #require(silent.openStream()).takesWebSocket == nil)
        for (settings, takes) in [(Self.offer, true), ([], false), ([0, 8, 0, 0, 0, 0], false)] {
            let client = try Client(settings: settings)
            #expect(try #require(client.session.openStream()).takesWebSocket == takes)
        }
    }

    @Test("a handshake goes out as an extended CONNECT, without what is HTTP/1.1's own")
    func connects() throws {
        let both = try JoinedSessions()
        let stream = try both.request(Self.handshake)
        let served = try #require(both.requests.first)
        // Our server writes the handshake as text again, with a key of its own.
        let text = served.readAll().text
        #expect(text.hasPrefix("GET /chat?a=b HTTP/1.1\r\nHost: h.example\r\n"))
        #expect(text.contains("sec-websocket-version: 13\r\nx-a: b\r\n\r\n"))
        #expect(!text.contains(Self.key))
        served.write(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                + "Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\nfirst")
        try both.settle()
        // The proof is the one for our key, whatever the server may say.
        #expect(
            stream.readAll().text
                == "HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                + "sec-websocket-protocol: chat\r\n\r\nfirst")
        stream.write("second")
        try both.settle()
        #expect(served.readAll() == ("second", false))
        stream.finishWriting()
        served.finishWriting()
        try both.settle()
        #expect(served.readAll() == ("", true))
        #expect(both.client.streamCount == 0)
    }

    @Test(
        "an answer that opens it says so whatever else it says",
        arguments: [
            [], [("content-length", "5")], [("sec-websocket-accept", "x")], [("upgrade", "h2c")],
        ])
    func successes(_ fields: [(String, String)]) throws {
        let (client, stream) = try Self.ask()
        _ = client.sent()
        try client.receive(
            RawFrames.headers([(":status", "200")] + fields, endsStream: false))
        let text = stream.readAll().text
        // A field that is about a connection makes the answer malformed (RFC 9113, section 8.2.2).
        if fields.first?.0 == "upgrade" {
            #expect(text.isEmpty && client.sent().contains { $0.type == 3 })
            return
        }
        let bytes = Array(text.utf8)
        var parser = ResponseParser(limits: HeadLimits())
        var head = ResponseHead()
        let isWhole = try parser.parse(bytes.span, requestMethod: .get, into: &head)
        let key = Array(Self.key.utf8)
        let opens = head.opensWebSocket(bytes.span, key: key.span)
        #expect(isWhole && opens && head.length == bytes.count)
    }

    @Test(
        "W10: a refusal has the length that it says",
        arguments: [("no", true), ("n", false), ("no, and a smuggled answer", false)])
    func refusals(content: String, isWhole: Bool) throws {
        let (client, stream) = try Self.ask()
        _ = client.sent()
        try client.receive(
            RawFrames.headers(
                [(":status", "403"), ("content-length", "2")], endsStream: false)
                + RawFrames.data(Array(content.utf8)))
        let (text, isOver) = stream.readAll()
        #expect(text.hasPrefix("HTTP/1.1 403 \r\ncontent-length: 2\r\n\r\n"))
        #expect(isOver == isWhole && stream.isMalformed != isWhole)
        #expect(!text.contains("smuggled"))
    }

    @Test(
        "what comes before the answer to a handshake has no length, nor has a refusal two",
        arguments: [
            [(":status", "103"), ("content-length", "2")],
            [(":status", "403"), ("content-length", "x")],
            [(":status", "403"), ("content-length", "2"), ("content-length", "2")],
        ])
    func lengths(_ fields: [(String, String)]) throws {
        let (client, stream) = try Self.ask()
        _ = client.sent()
        try client.receive(RawFrames.headers(fields, endsStream: false))
        #expect(stream.isMalformed && stream.readAll().text.isEmpty)
    }

    @Test("101 is no answer over HTTP/2 (RFC 9113, section 8.6)")
    func switching() throws {
        let (client, stream) = try Self.ask()
        _ = client.sent()
        try? client.receive(RawFrames.headers([(":status", "101")], endsStream: false))
        #expect(stream.readAll().text.isEmpty)
        #expect(client.sent().contains { $0.type == 3 && $0.stream == 1 })
    }

    @Test("a tunnel that is given up is reset with CANCEL")
    func givesUp() throws {
        let (client, stream) = try Self.ask()
        _ = client.sent()
        try client.receive(RawFrames.headers([(":status", "200")], endsStream: false))
        _ = stream.readAll()
        stream.close()
        let reset = try #require(client.sent().first { $0.type == 3 })
        #expect(reset.payload == RawFrames.bytes(8))
    }
}
