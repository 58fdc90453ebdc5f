import HTTP
import Reactor
import Testing

/// A client's session with one request out, which is fed what a server sends.
final class ClientUnderTest: SessionUnderTest {
    let session: HTTP2Session
    let stream: HTTP2Stream
    let now = MonotonicInstant(nanoseconds: 1_000_000_000)

    init(method: String = "GET") throws {
        session = try HTTP2Session(role: .client, limits: .upstream, now: now)
        let settings = RawFrames.settings
        try session.receive(settings.span, now: now)
        stream = try #require(session.openStream())
        stream.write("\(method) / HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = sent()
    }
}

/// RFC 9113, section 8: what is no message is refused, alone, and nothing behind it counts.
@Suite("HTTP/2 messages")
struct HTTP2MessageTests {
    /// How the frames of a message come, and those behind it.
    enum Arrival: CaseIterable {
        case together, apart, byteByByte

        func pieces(_ frames: [UInt8], behind: [UInt8]) -> [[UInt8]] {
            switch self {
            case .together: [frames + behind]
            case .apart: [frames, behind]
            case .byteByByte: (frames + behind).map { [$0] }
            }
        }
    }

    /// What must not count: a client that was refused may have sent it before it knew.
    private static let behind =
        RawFrames.data(Array("evil".utf8), endsStream: false) + RawFrames.headers([("evil", "1")])

    @Test(
        "W3: a malformed request is reset, and its connection goes on",
        arguments: Malformation.requests, Arrival.allCases)
    func requests(_ bad: Malformation, _ arrival: Arrival) throws {
        let server = try ServerUnderTest()
        server.greet()
        let behind = bad.isOver ? [] : Self.behind
        let frames = arrival.pieces(bad.frames, behind: behind).flatMap { server.exchange($0) }
        #expect(frames.filter { $0.type == 3 }.map { [$0.stream, $0.errorCode] } == [[1, 1]])
        #expect(!frames.contains { $0.type == 7 })
        if bad.hasHead {
            try expectRefused(try #require(server.requests.first), hasHead: true)
            server.requests[0].close()
        }
        #expect(server.requests.count == (bad.hasHead ? 1 : 0))
        server.exchange(RawFrames.headers(RawFrames.get, stream: 3))
        #expect(server.requests.last?.readAll().isOver == true)
        #expect(server.session.streamCount == 1)
    }

    @Test(
        "W10: a malformed response is reset, and its connection goes on",
        arguments: Malformation.responses, Arrival.allCases)
    func responses(_ bad: Malformation, _ arrival: Arrival) throws {
        let client = try ClientUnderTest(method: bad.method)
        let behind = bad.isOver ? [] : Self.behind
        let frames = arrival.pieces(bad.frames, behind: behind).flatMap { client.exchange($0) }
        #expect(frames.filter { $0.type == 3 }.map { [$0.stream, $0.errorCode] } == [[1, 1]])
        #expect(!frames.contains { $0.type == 7 })
        try expectRefused(client.stream, hasHead: bad.hasHead)
        client.stream.close()
        let next = try #require(client.session.openStream())
        next.write("GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        _ = client.sent()
        _ = client.exchange(RawFrames.headers([(":status", "204")], stream: 3))
        #expect(next.readAll() == ("HTTP/1.1 204 \r\n\r\n", true))
        #expect(client.session.streamCount == 0)
    }

    private func expectRefused(_ stream: HTTP2Stream, hasHead: Bool) throws {
        #expect(stream.isMalformed && stream.isBroken)
        let (text, isOver) = stream.readAll()
        #expect(!isOver && stream.trailers.isEmpty)
        #expect(throws: Errno.connectionReset) {
            _ = try stream.read(into: ByteBuffer(capacity: 64))
        }
        let heads = text.split(separator: "\r\n\r\n", omittingEmptySubsequences: false)
        // Interim heads are in order, whatever follows.
        let content = try #require(heads.last)
        #expect("12345".hasPrefix(content), "\(text)")
        let final = heads.dropLast().filter { !$0.hasPrefix("HTTP/1.1 1") }
        #expect(final.count == (hasHead ? 1 : 0), "\(text)")
    }

    /// Requests that are unusual and in order, and the content of each.
    private static let unusual: [([UInt8], String)] = {
        let five = head(("content-length", "5"))
        let padded = [2] + Array("12345".utf8) + [0, 0]
        var all: [([UInt8], String)] = []
        all.append((RawFrames.headers(RawFrames.get(adding: ("content-length", "0"))), ""))
        all.append((five + Malformation.data("12345"), "12345"))
        all.append((five + part("123") + part("") + Malformation.data("45"), "12345"))
        all.append(
            (
                five + RawFrames.frame(0, flags: 8, stream: 1, padded)
                    + RawFrames.frame(0, flags: 9, stream: 1, [1, 0]), "12345"
            ))
        all.append((five + part("12345") + RawFrames.headers([("x", "1")]), "12345"))
        // A field of the head that is no trailer field does not count.
        all.append((five + part("12345") + RawFrames.headers([("content-length", "6")]), "12345"))
        all.append((head(("te", "trailers")) + Malformation.data(""), ""))
        all.append((head(("te", "Trailers")) + Malformation.data("12345"), "12345"))
        all.append((head(("x", "")) + Malformation.data(""), ""))
        all.append((head(("host", "A.example")) + Malformation.data(""), ""))
        all.append((head(("x", "\u{E9}")) + RawFrames.headers([]), ""))
        return all
    }()

    private static func part(_ text: String) -> [UInt8] { Malformation.data(text, ends: false) }

    @Test("what is unusual in a request is none of these", arguments: unusual)
    func unusualRequests(_ frames: [UInt8], _ content: String) throws {
        for arrival in Arrival.allCases {
            let server = try ServerUnderTest()
            server.greet()
            let sent = arrival.pieces(frames, behind: []).flatMap { server.exchange($0) }
            #expect(!sent.contains { $0.type == 3 || $0.type == 7 })
            let request = try #require(server.requests.first)
            let (text, isOver) = request.readAll()
            #expect(text.hasSuffix("\r\n\r\n\(content)") && isOver && !request.isMalformed)
        }
    }

    private static func head(_ field: (String, String)) -> [UInt8] {
        RawFrames.headers(RawFrames.get(adding: field), endsStream: false)
    }

    /// A response that is unusual and in order.
    struct Unusual {
        var method = "GET"
        var heads: [[(String, String)]]
        var content = ""

        init(_ method: String, _ heads: [(String, String)]..., content: String = "") {
            self.method = method
            self.heads = heads
            self.content = content
        }
    }

    @Test(
        "what is unusual in a response is none of these",
        arguments: [
            Unusual("GET", [(":status", "204"), ("content-length", "0")]),
            Unusual("GET", [(":status", "204")]),
            Unusual("GET", [(":status", "304"), ("content-length", "5")]),
            Unusual("HEAD", [(":status", "200"), ("content-length", "5")]),
            Unusual("HEAD", [(":status", "404")]),
            Unusual(
                "GET", [(":status", "103")], [(":status", "103")],
                [(":status", "200"), ("content-length", "5")], content: "12345"),
            Unusual(
                "GET", [(":status", "100"), ("te", "trailers")], [(":status", "200")],
                content: "12345"),
            Unusual("GET", [(":status", "599"), ("x", "\u{E9}")], content: "12345"),
        ])
    func unusualResponses(_ response: Unusual) throws {
        let content = response.content
        for endsWithTrailers in [false, true] {
            let client = try ClientUnderTest(method: response.method)
            var frames = response.heads.flatMap { RawFrames.headers($0, endsStream: false) }
            if endsWithTrailers {
                if !content.isEmpty { frames += Self.part(content) }
                frames += RawFrames.headers([("x", "1")])
            } else {
                frames += Malformation.data(content)
            }
            #expect(!client.exchange(frames).contains { $0.type == 3 || $0.type == 7 })
            let read = client.stream.readAll()
            #expect(read.text.hasSuffix("\r\n\r\n\(content)") && read.isOver)
            #expect(client.stream.trailers.count == (endsWithTrailers ? 1 : 0))
        }
    }
}
