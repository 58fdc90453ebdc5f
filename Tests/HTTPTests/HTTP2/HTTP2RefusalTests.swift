import HTTP
import Reactor
import Testing

/// What a malformed message costs, and what becomes of what came with it.
@Suite("HTTP/2 refusals")
struct HTTP2RefusalTests {
    private static let declared = RawFrames.get(adding: ("content-length", "5"))
    private static let block = [UInt8](repeating: UInt8(ascii: "x"), count: 16_384)

    private static func head(_ id: UInt32, length: Int? = nil) -> [UInt8] {
        RawFrames.headers(
            length.map { RawFrames.get(adding: ("content-length", "\($0)")) } ?? RawFrames.get,
            stream: id, endsStream: false)
    }

    private static func block(_ id: UInt32) -> [UInt8] {
        RawFrames.data(block, stream: id, endsStream: false)
    }

    @Test("whoever reads a refused message knows at once, and not when the peer takes the reset")
    func atOnce() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(Self.head(1, length: 5))
        let request = try #require(server.requests.first)
        #expect(!request.isMalformed && !request.isBroken)
        let content = Malformation.data("123456")
        try server.session.receive(content.span, now: server.now)
        #expect(request.isMalformed && request.isBroken && request.isReadable)
        #expect(server.sent().map { $0.errorCode } == [1])
    }

    @Test(
        "W9: content that was refused gives the connection's window back",
        arguments: ["at its head", "unread", "read", "reset at once", "reset before it was read"])
    func windows(_ way: String) throws {
        let server = try ServerUnderTest()
        server.greet()
        let blocks = 2 * Int(server.session.limits.connectionWindow) / Self.block.count
        for index in 0..<UInt32(blocks / 2) {
            let id = 2 * index + 1
            let reset = RawFrames.frame(3, stream: id, RawFrames.bytes(8))
            switch way {
            case "at its head":
                let bad = RawFrames.headers(
                    RawFrames.get(adding: ("te", "gzip")), stream: id, endsStream: false)
                server.exchange(bad + Self.block(id) + Self.block(id))
            case "reset at once":
                server.exchange(Self.head(id) + Self.block(id) + Self.block(id) + reset)
            case "reset before it was read":
                server.exchange(Self.head(id) + Self.block(id) + Self.block(id))
                server.exchange(reset)
            default:
                server.exchange(
                    Self.head(id, length: Self.block.count + 1) + Self.block(id) + Self.block(id))
                if way == "read" { _ = server.requests.last?.readAll() }
            }
            server.requests.last?.close()
            _ = server.sent()
        }
        #expect(server.session.failure == nil)
        let id = UInt32(blocks + 1)
        server.exchange(Self.head(id) + Self.block(id) + RawFrames.data([1], stream: id))
        #expect(server.requests.last?.readAll().text.hasSuffix("x\u{1}") == true)
    }

    @Test(
        "W9: malformed requests in a row are a flood",
        arguments: [
            RawFrames.get(adding: ("connection", "close")), RawFrames.get(adding: ("X", "1")),
            declared,
        ])
    func heads(fields: [(String, String)]) throws {
        let server = try ServerUnderTest()
        server.greet()
        var codes: [UInt32?] = []
        for index in 0..<UInt32(2 * server.session.limits.idleFrames)
        where server.session.failure == nil {
            codes += server.exchange(RawFrames.headers(fields, stream: 2 * index + 1))
                .filter { $0.type == 7 }.map { $0.errorCode }
        }
        #expect(server.session.failure == .flood && codes == [11])
        #expect(server.requests.isEmpty)
    }

    @Test(
        "W9: so are requests whose content is malformed, whether or not they were answered",
        arguments: [false, true])
    func contents(isAnswered: Bool) throws {
        let server = try ServerUnderTest()
        server.greet()
        for index in 0..<UInt32(2 * server.session.limits.idleFrames)
        where server.session.failure == nil {
            let id = 2 * index + 1
            server.exchange(Self.head(id, length: 5))
            let request = try #require(server.requests.last)
            if isAnswered { request.write("HTTP/1.1 204 No Content\r\n\r\n") }
            _ = server.sent()
            server.exchange(RawFrames.data([1], stream: id))
            request.close()
            _ = server.sent()
        }
        #expect(server.session.failure == .flood)
    }

    @Test("W10: a server whose responses are malformed is left")
    func server() throws {
        let client = try ClientUnderTest()
        var stream: HTTP2Stream? = client.stream
        var count = 0
        while let open = stream, count < 2 * client.session.limits.idleFrames {
            _ = client.exchange(
                RawFrames.headers([("x", "1")], stream: UInt32(open.id), endsStream: false))
            #expect(open.isBroken)
            open.close()
            stream = client.session.openStream()
            stream?.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = client.sent()
            count += 1
        }
        #expect(client.session.failure == .flood)
    }

    @Test(
        "8.1: what nobody reads any more is not counted, and its end is no violation",
        arguments: [
            RawFrames.data([1, 2]), RawFrames.data([1, 2, 3, 4, 5, 6]),
            RawFrames.data([1], endsStream: false) + RawFrames.headers([("x", "1")]),
            RawFrames.headers([("x", "1")]),
        ])
    func unwanted(rest: [UInt8]) throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(Self.head(1, length: 5) + Malformation.data("123", ends: false))
        let request = try #require(server.requests.first)
        request.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        request.close()
        #expect(server.sent().map { [$0.type, $0.flags] } == [[1, 5]])
        #expect(!server.exchange(rest).contains { $0.type == 3 || $0.type == 7 })
        #expect(server.session.streamCount == 0 && server.session.leftoverCount == 0)
    }

    @Test("8.4: a push that came before the server knew is none of ours")
    func push() throws {
        let client = try ClientUnderTest()
        let promise = RawFrames.frame(
            5, flags: 4, stream: 1, RawFrames.bytes(2) + RawFrames.block(RawFrames.get))
        let frames = client.exchange(
            promise + RawFrames.headers([(":status", "200")], stream: 2, endsStream: false)
                + RawFrames.data(Array("evil".utf8), stream: 2)
                + RawFrames.headers([(":status", "200")], endsStream: false)
                + Malformation.data("12345"))
        #expect(client.stream.readAll() == ("HTTP/1.1 200 \r\n\r\n12345", true))
        #expect(!frames.contains { $0.type == 7 })
    }
}
