import HTTP
import Reactor
import Testing

/// What RFC 9113 says a server does with frames that are wrong, frame by frame.
@Suite("HTTP/2 conformance")
struct HTTP2ConformanceTests {
    @Test(
        "frames that are wrong end what they are wrong for",
        arguments: Violation.framing + Violation.states + Violation.heads)
    func frames(_ example: Violation) throws {
        try expect(example)
    }

    @Test(
        "frames about the connection, and flow control",
        arguments: Violation.connection + Violation.windows)
    func connection(_ example: Violation) throws {
        try expect(example)
    }

    private func expect(_ example: Violation) throws {
        let server = try ServerUnderTest()
        server.greet()
        let frames = server.exchange(example.bytes)
        let goaway = frames.first { $0.type == 7 && $0.errorCode != 0 }?.errorCode
        let reset = frames.first { $0.type == 3 }?.errorCode
        switch example.outcome {
        case .connectionError(let codes):
            #expect(
                goaway.map { codes.contains($0) } == true, "GOAWAY \(String(describing: goaway))")
            #expect(server.session.failure != nil)
        case .streamError(let codes):
            let code = reset ?? goaway
            #expect(code.map { codes.contains($0) } == true, "\(String(describing: code))")
        case .ignored:
            #expect(goaway == nil)
            let pong = server.exchange(Violation.ping)
            #expect(pong.contains { $0.type == 6 && $0.flags == 1 })
        }
    }

    @Test("3.4: what begins in another way is no HTTP/2 connection")
    func preface() throws {
        let server = try ServerUnderTest()
        server.exchange(Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        #expect(server.session.failure == .preface)
    }

    @Test("3.4: the preface is followed by SETTINGS, and by nothing else")
    func settingsFirst() throws {
        let server = try ServerUnderTest()
        let frames = server.exchange(RawFrames.preface + Violation.ping)
        #expect(frames.contains { $0.type == 7 && $0.errorCode == 1 })
    }

    @Test("6.9.1: all streams together keep within the connection's window")
    func connectionWindow() throws {
        let server = try ServerUnderTest()
        server.greet()
        var frames: [SentFrame] = []
        let block = [UInt8](repeating: 0, count: 16_384)
        for stream in stride(from: UInt32(1), to: 40, by: 2) where frames.isEmpty {
            server.exchange(RawFrames.headers(RawFrames.get, stream: stream, endsStream: false))
            for _ in 0..<7 {
                frames += server.exchange(RawFrames.data(block, stream: stream, endsStream: false))
                    .filter { $0.type == 7 }
            }
        }
        #expect(frames.first?.errorCode == 3)
    }

    @Test("8.1: an answer without content ends with its head")
    func headAlone() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(Violation.request)
        let stream = try #require(server.requests.first)
        stream.write("HTTP/1.1 200 OK\r\ngrpc-status: 5\r\n\r\n")
        stream.finishMessage(trailers: [])
        #expect(server.sent().map { [$0.type, $0.flags] } == [[1, 5]])
    }

    @Test("5.1: no head may come for a stream whose request and answer are over")
    func closed() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(Violation.request)
        let stream = try #require(server.requests.first)
        stream.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        stream.finishMessage(trailers: [])
        #expect(server.sent().map(\.type) == [1])
        #expect(server.session.streamCount == 0)
        let frames = server.exchange(Violation.request)
        #expect(frames.contains { $0.type == 7 && $0.errorCode == 5 })
    }

    @Test("5.1: what was on its way when we reset a stream, or refused it, is ignored")
    func onItsWay() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(Violation.open)
        try #require(server.requests.first).close()
        #expect(server.sent().map { $0.errorCode } == [2])
        // More than are allowed, but none that were known to be too many, and not one skipped.
        for stream in stride(from: UInt32(3), through: 401, by: 2) {
            server.exchange(RawFrames.headers(RawFrames.get, stream: stream, endsStream: false))
        }
        let late = [UInt32](stride(from: 1, through: 401, by: 2)).flatMap { stream in
            RawFrames.data([1], stream: stream, endsStream: false)
                + RawFrames.headers([("x", "1")], stream: stream)
        }
        #expect(!server.exchange(late).contains { $0.type == 7 })
        #expect(server.exchange(Violation.ping).contains { $0.type == 6 && $0.flags == 1 })
    }

    @Test("5.1: who sends heads to streams that it reset is told so once for each, within a budget")
    func stubborn() throws {
        let server = try ServerUnderTest()
        server.greet()
        let frames = server.exchange(
            Violation.open + Violation.reset
                + Array(repeatElement(Violation.request, count: 5).joined()))
        #expect(frames.filter { $0.type == 3 }.map { $0.errorCode } == [5])
        var codes: Set<UInt32?> = []
        for stream in stride(from: UInt32(3), to: 9_000, by: 2) where server.session.failure == nil
        {
            let frames = server.exchange(
                RawFrames.headers(RawFrames.get, stream: stream, endsStream: false)
                    + RawFrames.frame(3, stream: stream, RawFrames.bytes(8))
                    + RawFrames.headers([("x", "1")], stream: stream))
            codes.formUnion(frames.filter { $0.type == 7 }.map { $0.errorCode })
        }
        #expect(codes == [11])
    }

    @Test(
        "8.1: the rest of a request is not waited for once its answer is out, and not at once refused"
    )
    func leftovers() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(Violation.open)
        let stream = try #require(server.requests.first)
        stream.write("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
        stream.close()
        #expect(server.sent().map { [$0.type, $0.flags] } == [[1, 5]])
        #expect(server.session.leftoverCount == 1)
        server.session.dropLeftovers(patience: 5)
        #expect(server.sent().map { $0.errorCode } == [0])
        #expect(server.session.leftoverCount == 0)
        #expect(server.session.streamCount == 0)
    }

    @Test("W9: an answer of which the client takes nothing has so much time and no more")
    func stalled() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.frame(4, [0, 4, 0, 0, 0, 0]) + Violation.request)
        let stream = try #require(server.requests.first)
        stream.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        stream.finishMessage(trailers: [])
        stream.close()
        #expect(server.sent().filter { $0.type != 4 }.map(\.type) == [1])
        for _ in 0..<2 {
            server.session.dropLeftovers(patience: 3)
            #expect(server.sent().isEmpty)
        }
        server.session.dropLeftovers(patience: 3)
        #expect(server.sent().map { $0.errorCode } == [8])
    }

    @Test("W9: when a head began is known until it is over")
    func headBegan() throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.frame(1, flags: 1, stream: 1, RawFrames.block(RawFrames.get)))
        #expect(server.session.headBegan == server.now)
        server.now = server.now.advanced(by: .seconds(1))
        server.exchange(RawFrames.frame(9, stream: 1))
        #expect(server.session.headBegan != server.now)
        #expect(server.session.headBegan != nil)
        server.exchange(RawFrames.frame(9, flags: 4, stream: 1))
        #expect(server.session.headBegan == nil)
        #expect(server.requests.count == 1)
    }

    @Test(
        "W9: a client that resets before it has its answer is gone, whatever code it gives",
        arguments: [0, 8] as [UInt8])
    func resetWhileWaiting(code: UInt8) throws {
        let server = try ServerUnderTest()
        server.greet()
        server.exchange(RawFrames.frame(1, flags: 5, stream: 1, RawFrames.block(RawFrames.get)))
        let request = try #require(server.requests.first)
        #expect(!request.isPeerClosed && !request.isBroken)
        server.exchange(RawFrames.frame(3, stream: 1, [0, 0, 0, code]))
        #expect(request.isPeerClosed && request.isBroken)
    }
}

/// What a client's session does with a server that goes.
@Suite("HTTP/2 clients")
struct HTTP2ClientSessionTests {
    @Test("one request goes to a server that did not say yet how many it takes")
    func greeting() throws {
        let client = try HTTP2Session(
            role: .client, limits: .upstream, now: MonotonicInstant(nanoseconds: 1))
        var changes = 0
        client.onCapacity = { changes += 1 }
        let first = try #require(client.openStream())
        first.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(client.openStream() == nil)
        let settings = RawFrames.settings
        try client.receive(settings.span, now: MonotonicInstant(nanoseconds: 2))
        #expect(changes == 1)
        #expect(client.openStream() != nil)
    }

    @Test("a request that never left was not acted upon; one that did may have been")
    func neverLeft() throws {
        let both = try JoinedSessions()
        let left = try both.request("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n")
        let waiting = try #require(both.client.openStream())
        waiting.write("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n")
        both.client.abandon()
        #expect(waiting.isRefused)
        #expect(left.isBroken && !left.isRefused)
        let late = HTTP2StreamOpener.afterTheEnd(of: both.client)
        #expect(late == nil || late?.isRefused == true)
    }

    @Test("a refused stream says so")
    func refused() throws {
        let both = try JoinedSessions()
        let stream = try both.request("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        both.requests[0].reset(.refusedStream)
        try both.settle()
        #expect(stream.isRefused)
    }

    @Test("a request that is given up is cancelled, as gRPC wants it")
    func cancelled() throws {
        let both = try JoinedSessions()
        let stream = try both.request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhal")
        stream.close()
        let frames = ByteBuffer(capacity: 1024)
        while both.client.produce(into: frames, limit: 1 << 20) {}
        #expect(SentFrame.read(frames.array).map(\.errorCode).contains(8))
    }
}

enum HTTP2StreamOpener {
    static func afterTheEnd(of session: HTTP2Session) -> HTTP2Stream? {
        let stream = session.openStream()
        stream?.write("GET /3 HTTP/1.1\r\nHost: h\r\n\r\n")
        return stream
    }
}
