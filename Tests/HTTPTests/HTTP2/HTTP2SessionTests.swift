import HTTP
import Reactor
import Testing

/// A server's session that is fed bytes, and what came of it.
final class ServerUnderTest: SessionUnderTest {
    let session: HTTP2Session
    var requests: [HTTP2Stream] = []
    var now = MonotonicInstant(nanoseconds: 1_000_000_000)

    init(limits: HTTP2Limits = HTTP2Limits()) throws {
        session = try HTTP2Session(role: .server, limits: limits, now: now)
        session.onRequest = { [unowned self] in requests.append($0) }
    }

    func greet() {
        exchange(RawFrames.preface + RawFrames.settings)
    }
}

extension ByteBuffer {
    var array: [UInt8] { withUnsafeBytes { Array($0) } }
    var text: String { String(decoding: array, as: UTF8.self) }
}

extension HTTP2Stream {
    func readAll() -> (text: String, isOver: Bool) {
        let buffer = ByteBuffer(capacity: 1 << 16)
        while true {
            buffer.reserve(1 << 12)
            switch try? read(into: buffer) {
            case .bytes: continue
            case .endOfStream: return (buffer.text, true)
            case .wouldBlock, nil: return (buffer.text, false)
            }
        }
    }

    @discardableResult
    func write(_ text: String) -> TransferResult? {
        var text = text
        return text.withUTF8 { bytes in try? write(UnsafeRawBufferPointer(bytes)) }
    }
}

@Suite("HTTP/2 sessions")
struct HTTP2SessionTests {
    @Test("a request reads as the text of an HTTP/1.1 head and its content")
    func request() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(
            RawFrames.headers(
                [
                    (":method", "POST"), (":scheme", "https"), (":path", "/v1/a?b=c"),
                    (":authority", "api.example"), ("cookie", "a=1"), ("content-length", "5"),
                    ("cookie", "b=2"), ("x-a", "1"),
                ], endsStream: false))
        let stream = try #require(server.requests.first)
        #expect(stream.hasContent)
        #expect(
            stream.readAll().text
                == "POST /v1/a?b=c HTTP/1.1\r\nHost: api.example\r\nCookie: a=1; b=2\r\n"
                + "content-length: 5\r\nx-a: 1\r\n\r\n")
        server.exchange(RawFrames.data(Array("hello".utf8)))
        let (content, isOver) = stream.readAll()
        #expect(content == "hello")
        #expect(isOver)
    }

    @Test("an answer's text becomes HEADERS and DATA, and its last DATA ends the stream")
    func answer() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.headers(RawFrames.get))
        let stream = try #require(server.requests.first)
        stream.write(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\nX-A: b\r\n\r\nhi")
        stream.finishMessage(trailers: [])
        let frames = server.sent()
        #expect(frames.map(\.type) == [1, 0])
        #expect(frames.last?.payload == Array("hi".utf8))
        #expect(frames.last?.flags == 1)
        #expect(!frames[0].payload.contains(sequence: Array("connection".utf8)))
        #expect(server.session.streamCount == 0)
    }

    @Test("W6: interim answers go before the final one, which may have no content")
    func interim() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.headers(RawFrames.get))
        let stream = try #require(server.requests.first)
        stream.write("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        stream.write("HTTP/1.1 204 No Content\r\n\r\n")
        #expect(server.sent().map { [$0.type, $0.flags] } == [[1, 4], [1, 5]])
    }

    @Test("an answer of unknown length ends when it is said to, and its trailers come last")
    func trailers() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.headers(RawFrames.get))
        let stream = try #require(server.requests.first)
        stream.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        #expect(server.sent().map(\.type) == [1])
        stream.write("part")
        #expect(server.sent().map { [$0.type, $0.flags] } == [[0, 0]])
        stream.finishMessage(trailers: [(Array("Grpc-Status".utf8), Array("0".utf8))])
        let frames = server.sent()
        #expect(frames.last.map { [$0.type, $0.flags] } == [1, 5])
    }

    @Test("W9: what is written waits within its limit until the peer opens its window")
    func backPressure() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.headers(RawFrames.get))
        let stream = try #require(server.requests.first)
        stream.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        var taken = 0
        let content = String(repeating: "x", count: 10_000)
        for _ in 0..<100 {
            guard case .bytes(let count)? = stream.write(content) else { break }
            taken += count
            _ = server.sent()
        }
        // The peer's window for a stream is 65,535 bytes, and we keep as much as we said.
        #expect(taken == 65_535 + server.session.limits.outgoingBytes)
        let opened = server.exchange(
            RawFrames.frame(8, stream: 1, RawFrames.bytes(1000))
                + RawFrames.frame(8, stream: 0, RawFrames.bytes(1000)))
        #expect(opened.reduce(0) { $0 + ($1.type == 0 ? $1.payload.count : 0) } == 1000)
    }

    @Test("W9: the window opens only for content that was taken")
    func window() throws {
        var limits = HTTP2Limits()
        limits.streamWindow = 65_535
        let server = try ServerUnderTest(limits: limits)
        server.greet()
        server.exchange(RawFrames.headers(RawFrames.get, endsStream: false))
        let block = [UInt8](repeating: 1, count: 16_384)
        var updates = 0
        for _ in 0..<3 {
            updates += server.exchange(RawFrames.data(block, endsStream: false))
                .count { $0.type == 8 }
        }
        #expect(updates == 0)
        let stream = try #require(server.requests.first)
        _ = stream.readAll()
        #expect(server.sent().contains { $0.type == 8 && $0.stream == 1 })
    }

    @Test(
        "W3: what has no safe meaning as text resets its stream, and nothing is forwarded",
        arguments: [
            [(":method", "GET"), (":scheme", "https"), (":path", "/a b"), (":authority", "a")],
            [(":method", "GET"), (":scheme", "https"), (":path", "/a\tb"), (":authority", "a")],
            [(":method", "GET"), (":scheme", "https"), (":path", ""), (":authority", "a")],
            [(":method", "GET"), (":scheme", "https"), (":path", "a"), (":authority", "a")],
            [
                (":method", "GET"), (":scheme", "https"), (":path", "http://b/"),
                (":authority", "a"),
            ],
            [(":method", "G T"), (":scheme", "https"), (":path", "/"), (":authority", "a")],
            [(":method", "GET"), (":scheme", "ftp"), (":path", "/"), (":authority", "a")],
            [(":method", "GET"), (":path", "/"), (":authority", "a")],
            [(":scheme", "https"), (":path", "/"), (":authority", "a")],
            RawFrames.get + [("host", "b.example")],
            RawFrames.get + [("Upper", "1")],
            RawFrames.get + [("connection", "close")],
            RawFrames.get + [("transfer-encoding", "chunked")],
            RawFrames.get + [("upgrade", "h2c")],
            RawFrames.get + [("te", "gzip")],
            RawFrames.get + [("x", "a\nb: c")],
            RawFrames.get + [("x", "a\r\nb: c")],
            RawFrames.get + [("x", "a\0")],
            RawFrames.get + [("x y", "a")],
            RawFrames.get + [(":path", "/again")],
            RawFrames.get + [("x", "1"), (":late", "2")],
        ])
    func malformed(fields: [(String, String)]) throws {
        let server = try ServerUnderTest()
        server.greet()
        let frames = server.exchange(RawFrames.headers(fields))
        #expect(server.requests.isEmpty)
        #expect(frames.contains { $0.type == 3 && $0.errorCode == 1 })
    }

    @Test("W3: content that is not as long as it said resets its stream")
    func wrongLength() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(
            RawFrames.headers(
                RawFrames.get(adding: ("content-length", "5")), endsStream: false))
        let frames = server.exchange(RawFrames.data(Array("hell".utf8)))
        #expect(frames.contains { $0.type == 3 })
        #expect(server.requests.first?.isBroken == true)
    }

    @Test("H8: a head beyond its limit is as long for the parser")
    func tooLong() throws {
        var limits = HTTP2Limits()
        limits.head = HeadLimits(bytes: 4096, fields: 100)
        let server = try ServerUnderTest(limits: limits)
        server.greet()
        server.exchange(
            RawFrames.headers(
                RawFrames.get(adding: ("x", String(repeating: "y", count: 5000)))))
        let stream = try #require(server.requests.first)
        var parser = RequestParser(limits: limits.head)
        var head = RequestHead()
        let text = Array(stream.readAll().text.utf8)
        #expect(throws: MalformedMessage(.headTooLarge)) {
            try parser.parse(text.span, into: &head)
        }
    }

    @Test(
        "W9: a stream that is reset at once never begins, and a flood of them ends the connection")
    func rapidReset() throws {
        let server = try ServerUnderTest()
        server.greet()
        var frames: [SentFrame] = []
        for index in 0..<2000 {
            let id = UInt32(index * 2 + 1)
            frames += server.exchange(
                RawFrames.headers(RawFrames.get, stream: id)
                    + RawFrames.frame(3, stream: id, RawFrames.bytes(8)))
        }
        #expect(server.requests.isEmpty)
        #expect(frames.contains { $0.type == 7 && $0.errorCode != 0 })
    }

    @Test(
        "W9: floods of frames that move nothing end the connection",
        arguments: [
            RawFrames.frame(6, [0, 0, 0, 0, 0, 0, 0, 0]),
            RawFrames.frame(4),
            RawFrames.frame(2, stream: 3, [0, 0, 0, 0, 16]),
            RawFrames.frame(8, RawFrames.bytes(1)),
        ])
    func floods(frame: [UInt8]) throws {
        let server = try ServerUnderTest()
        server.greet()
        for _ in 0..<2000 { server.exchange(frame) }
        #expect(server.session.failure == .flood)
    }

    @Test(
        "W9: DATA frames without content are a flood as well",
        arguments: [
            RawFrames.data([], endsStream: false), RawFrames.frame(0, flags: 8, stream: 1, [1, 0]),
        ])
    func emptyData(frame: [UInt8]) throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.headers(RawFrames.get, endsStream: false))
        for _ in 0..<2000 { server.exchange(frame) }
        #expect(server.session.failure == .flood)
    }

    @Test("W9: a head in endless CONTINUATION frames ends the connection")
    func continuations() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.frame(1, flags: 1, stream: 1, RawFrames.block(RawFrames.get)))
        for index in 0..<100 {
            server.exchange(
                RawFrames.frame(9, stream: 1, RawFrames.field("x-\(index)", "y")))
        }
        #expect(server.session.failure != nil)
        #expect(server.requests.isEmpty)
    }

    @Test("W9: a head that a few bytes make huge ends the connection before it is decoded")
    func bomb() throws {
        let server = try ServerUnderTest()
        server.greet()
        let long = RawFrames.field("x", String(repeating: "v", count: 4000))
        // Into the table, and out of it again and again (RFC 7541, section 6.1).
        let block = RawFrames.block(RawFrames.get) + [0x40] + long[1...]
        server.exchange(
            RawFrames.frame(1, flags: 5, stream: 1, block + [UInt8](repeating: 0xBE, count: 10_000))
        )
        #expect(server.session.failure == .flood)
        #expect(server.requests.isEmpty)
    }

    @Test("W9: pings that content comes with are no flood, however many there are")
    func earnedPings() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.headers(RawFrames.get, endsStream: false))
        let stream = try #require(server.requests.first)
        for _ in 0..<5000 {
            server.exchange(
                RawFrames.data([1], endsStream: false)
                    + RawFrames.frame(6, [0, 0, 0, 0, 0, 0, 0, 1]))
            _ = stream.readAll()
        }
        #expect(server.session.failure == nil)
    }

    @Test("W9: streams that are reset now and then, among others that end well, are no flood")
    func earnedResets() throws {
        let server = try ServerUnderTest()
        server.greet()
        for index in 0..<2500 {
            let id = UInt32(index * 4 + 1)
            server.exchange(
                RawFrames.headers(RawFrames.get, stream: id)
                    + RawFrames.headers(RawFrames.get, stream: id + 2)
                    + RawFrames.frame(3, stream: id, RawFrames.bytes(8)))
            let served = try #require(server.requests.last)
            served.write("HTTP/1.1 204 No Content\r\n\r\n")
            served.close()
            _ = server.sent()
        }
        #expect(server.session.failure == nil)
    }

    @Test("W9: pings at a human pace are answered for ever")
    func pings() throws {
        let server = try ServerUnderTest()
        server.greet()
        for _ in 0..<5000 {
            server.now = server.now.advanced(by: .milliseconds(100))
            let frames = server.exchange(RawFrames.frame(6, [0, 0, 0, 0, 0, 0, 0, 1]))
            #expect(frames.map(\.type) == [6])
        }
        #expect(server.session.failure == nil)
    }
}

extension [UInt8] {
    func contains(sequence: [UInt8]) -> Bool {
        indices.contains { self[$0...].starts(with: sequence) }
    }
}
