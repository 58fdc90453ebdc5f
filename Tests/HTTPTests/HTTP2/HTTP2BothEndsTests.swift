import HTTP
import Reactor
import Testing

/// A client's and a server's session, joined.
final class JoinedSessions {
    let client: HTTP2Session
    let server: HTTP2Session
    var requests: [HTTP2Stream] = []
    let now = MonotonicInstant(nanoseconds: 1)

    init(
        clientLimits: HTTP2Limits = .upstream, serverLimits: HTTP2Limits = HTTP2Limits()
    ) throws {
        client = try HTTP2Session(role: .client, limits: clientLimits, now: now)
        server = try HTTP2Session(role: .server, limits: serverLimits, now: now)
        server.onRequest = { [unowned self] in requests.append($0) }
        try settle()
    }

    /// Carries bytes to and fro until neither side has any.
    func settle() throws {
        let buffer = ByteBuffer(capacity: 1024)
        var isMoving = true
        while isMoving {
            isMoving = false
            for (from, to) in [(client, server), (server, client)] {
                buffer.removeAll()
                while from.produce(into: buffer, limit: 1 << 20) {}
                if buffer.isEmpty { continue }
                isMoving = true
                try to.receive(buffer.bytes, now: now)
            }
        }
    }

    func request(_ text: String) throws -> HTTP2Stream {
        let stream = try #require(client.openStream())
        stream.write(text)
        try settle()
        return stream
    }
}

@Suite("HTTP/2 from end to end")
struct HTTP2BothEndsTests {
    @Test("a request and its answer arrive as they were written")
    func exchange() throws {
        let both = try JoinedSessions()
        let stream = try both.request(
            "POST /a?b HTTP/1.1\r\nHost: h.example:8080\r\nContent-Length: 4\r\n"
                + "Connection: keep-alive\r\nX-Firebase-AppCheck: t.o.k\r\n\r\nbody")
        stream.finishMessage(trailers: [])
        try both.settle()
        let served = try #require(both.requests.first)
        let (text, isOver) = served.readAll()
        #expect(
            text == "POST /a?b HTTP/1.1\r\nHost: h.example:8080\r\ncontent-length: 4\r\n"
                + "x-firebase-appcheck: t.o.k\r\n\r\nbody")
        #expect(isOver)
        served.write(
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno")
        served.finishMessage(trailers: [])
        try both.settle()
        let answer = stream.readAll()
        #expect(
            answer.text
                == "HTTP/1.1 404 \r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nno")
        #expect(answer.isOver)
        #expect(both.client.streamCount == 0)
        #expect(both.server.streamCount == 0)
    }

    @Test("trailers follow content of known length, too")
    func trailersBehindLength() throws {
        let both = try JoinedSessions()
        let stream = try both.request("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        let served = try #require(both.requests.first)
        served.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        try both.settle()
        #expect(!stream.readAll().isOver)
        served.finishMessage(trailers: [(Array("grpc-status".utf8), Array("0".utf8))])
        try both.settle()
        #expect(stream.readAll().isOver)
        #expect(stream.trailers.map { String(decoding: $0.value, as: UTF8.self) } == ["0"])
    }

    @Test("content of unknown length and trailers pass both ways")
    func streams() throws {
        let both = try JoinedSessions()
        let stream = try both.request(
            "POST / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n")
        let served = try #require(both.requests.first)
        #expect(served.hasContent)
        #expect(served.readAll().text.hasSuffix("te: trailers\r\n\r\n"))
        stream.write("one")
        try both.settle()
        #expect(served.readAll() == ("one", false))
        stream.finishMessage(trailers: [(Array("X-Sum".utf8), Array("1".utf8))])
        try both.settle()
        #expect(served.readAll() == ("", true))
        #expect(served.trailers.map { String(decoding: $0.name, as: UTF8.self) } == ["x-sum"])
        served.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ntwo")
        served.finishMessage(trailers: [(Array("grpc-status".utf8), Array("0".utf8))])
        try both.settle()
        #expect(stream.readAll() == ("HTTP/1.1 200 \r\n\r\ntwo", true))
        #expect(stream.trailers.map { String(decoding: $0.value, as: UTF8.self) } == ["0"])
    }

    @Test("W8: trailer fields that pose as credentials or framing are dropped")
    func trailers() throws {
        let both = try JoinedSessions()
        let stream = try both.request(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        stream.finishMessage(trailers: [
            (Array("x-firebase-appcheck".utf8), Array("t.o.k".utf8)),
            (Array("x-kept".utf8), Array("1".utf8)),
        ])
        try both.settle()
        let served = try #require(both.requests.first)
        #expect(served.trailers.map { String(decoding: $0.name, as: UTF8.self) } == ["x-kept"])
    }

    @Test("trailer fields that are too long fail the message: no part of them passes for all")
    func longTrailers() throws {
        var limits = HTTP2Limits.upstream
        limits.head = HeadLimits(bytes: 4096, fields: 100)
        let both = try JoinedSessions(clientLimits: limits)
        let stream = try both.request("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        let served = try #require(both.requests.first)
        served.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhi")
        served.finishMessage(trailers: [
            (Array("x-first".utf8), Array("1".utf8)),
            (Array("x-long".utf8), [UInt8](repeating: UInt8(ascii: "a"), count: 5000)),
            (Array("grpc-status".utf8), Array("0".utf8)),
        ])
        try both.settle()
        let (text, isOver) = stream.readAll()
        #expect(text.hasSuffix("hi"))
        #expect(!isOver)
        #expect(stream.isBroken)
        #expect(stream.trailers.isEmpty)
    }

    @Test("W9: interim heads that nobody reads yet are kept up to the limit of one head")
    func interimHeads() throws {
        let both = try JoinedSessions()
        let stream = try both.request("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        let served = try #require(both.requests.first)
        let field = "X-A: \(String(repeating: "a", count: 1000))"
        let interim = "HTTP/1.1 103 Early Hints\r\n\(field)\r\n\r\n"
        for _ in 0..<30 { served.write(interim) }
        try both.settle()
        #expect(stream.readAll().text.count > 30_000)
        #expect(!stream.isBroken)
        for _ in 0..<200 { served.write(interim) }
        try both.settle()
        #expect(stream.isBroken)
        #expect(stream.readAll().text.count < 70_000)
    }

    @Test("a stream that is closed before its message is complete is reset")
    func cutOff() throws {
        let both = try JoinedSessions()
        let stream = try both.request("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        let served = try #require(both.requests.first)
        served.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        try both.settle()
        served.close()
        try both.settle()
        #expect(stream.readAll().text.hasSuffix("half"))
        #expect(stream.isBroken)
        #expect(throws: Errno.connectionReset) {
            _ = try stream.read(into: ByteBuffer(capacity: 64))
        }
    }

    @Test("an answer before the end of the request is delivered, and the rest is dropped")
    func earlyAnswer() throws {
        let both = try JoinedSessions()
        let stream = try both.request(
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n")
        let content = String(repeating: "x", count: 50_000)
        stream.write(content)
        try both.settle()
        let served = try #require(both.requests.first)
        served.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        served.close()
        try both.settle()
        #expect(stream.readAll() == ("HTTP/1.1 401 \r\ncontent-length: 0\r\n\r\n", true))
        for _ in 0..<10 {
            stream.write(content)
            try both.settle()
        }
        // The connection's window is whole again: another upload is not held up.
        let next = try both.request(
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
        #expect(both.requests.count == 2)
        #expect(both.requests[1].readAll().text.hasSuffix("hello"))
        next.close()
    }

    @Test("GOAWAY lets what is under way end and takes no more")
    func shutdown() throws {
        let both = try JoinedSessions()
        let stream = try both.request("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        both.server.announceShutdown()
        both.server.finishShutdown()
        try both.settle()
        #expect(both.client.isGoingAway)
        #expect(both.client.openStream() == nil)
        both.requests[0].write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        both.requests[0].finishMessage(trailers: [])
        try both.settle()
        #expect(stream.readAll().text.hasSuffix("ok"))
        #expect(both.server.isOver)
    }

    @Test("no more streams are opened than the peer allows")
    func capacity() throws {
        var limits = HTTP2Limits()
        limits.concurrentStreams = 2
        let both = try JoinedSessions(serverLimits: limits)
        var freed = 0
        both.client.onCapacity = { freed += 1 }
        let first = try both.request("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n")
        _ = try both.request("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(both.client.openStream() == nil)
        both.requests[0].write("HTTP/1.1 204 No Content\r\n\r\n")
        try both.settle()
        #expect(first.readAll().isOver)
        #expect(freed == 1)
        #expect(both.client.openStream() != nil)
    }

    @Test("a stream counts from the moment at which it is opened, before its head is written")
    func reserved() throws {
        var limits = HTTP2Limits()
        limits.concurrentStreams = 2
        let both = try JoinedSessions(serverLimits: limits)
        let first = try #require(both.client.openStream())
        #expect(both.client.hasStreams && both.client.streamCount == 1)
        var second = both.client.openStream()
        #expect(second != nil && both.client.openStream() == nil)
        var outputs = 0
        both.client.onOutput = { outputs += 1 }
        first.close()
        #expect(both.client.streamCount == 1)
        #expect(outputs == 1, "who keeps the connection looks again")
        second?.write("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        try both.settle()
        #expect(both.client.streamCount == 1 && both.requests.count == 1)
        both.requests[0].write("HTTP/1.1 204 No Content\r\n\r\n")
        try both.settle()
        #expect(!both.client.hasStreams)
        // One that is let go of does not count for ever either.
        second = both.client.openStream()
        #expect(both.client.hasStreams)
        second = nil
        #expect(!both.client.hasStreams)
    }

    @Test("HEAD and 304 have no content whatever their length says")
    func headRequests() throws {
        let both = try JoinedSessions()
        let stream = try both.request("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
        both.requests[0].write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        try both.settle()
        #expect(stream.readAll() == ("HTTP/1.1 200 \r\ncontent-length: 1000\r\n\r\n", true))
    }
}
