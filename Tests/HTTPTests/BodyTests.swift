import HTTP
import TestKit
import Testing

@Suite("Bodies")
struct BodyTests {
    /// The outcome, having made sure that it does not depend on how the bytes arrive.
    private func decode(
        _ body: String, _ framing: BodyFraming = .chunked,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> ChunkedInvariants.Outcome {
        let input = bytes(body)
        let whole = ChunkedInvariants.decode(input, framing: framing, pieces: input.count + 1)
        for pieces in 1...min(40, input.count + 1) {
            let other = ChunkedInvariants.decode(input, framing: framing, pieces: pieces)
            #expect(other == whole, "pieces of \(pieces)", sourceLocation: sourceLocation)
        }
        return whole
    }

    private func complete(
        _ content: String, trailers: [[String]] = [], length: Int
    ) -> ChunkedInvariants.Outcome {
        .complete(
            content: bytes(content), trailers: trailers.map { $0.map(bytes) }, length: length)
    }

    @Test(
        "Decodes chunks and finds the end of the body",
        arguments: [
            Case("0\r\n\r\n", ""), Case("5\r\nhello\r\n0\r\n\r\n", "hello"),
            Case("5\r\nhello\r\n1\r\n!\r\n000\r\n\r\n", "hello!"),
            Case("00000000000000a\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
            Case("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
            Case("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
            Case("1;a\r\nx\r\n0;b=c\r\n\r\n", "x"),
            Case("1;a=\"b;\\\"c\\\\\"\r\nx\r\n0\r\n\r\n", "x"),
        ])
    func decodesChunks(_ row: Case<String>) {
        let length = bytes(row.input).count
        #expect(decode(row.input) == complete(row.expected, length: length))
        #expect(decode(row.input + "GET / HTTP/1.1") == complete(row.expected, length: length))
    }

    @Test(
        "W2: refuses every chunk that could end in two places",
        arguments: [
            "\r\n", "\n", "x\r\n", "g\r\n", "-1\r\nx", "+1\r\nx", "0x1\r\nx", " 1\r\nx", "1 \r\nx",
            "1\t\r\nx", "1 ;a\r\nx", "1\nx\r\n", "1\rx\r\n", "1\r\rx", "1;a\nx\r\n", "1;a\rb\r\nx",
            "1;a\u{0}\r\nx", "1;a=\u{E9}\r\nx", "1;a=\"\r\n\"\r\nx", "1;a=\"b\r\nx",
            "1;a=\"b\\\r\nx",
            "1\r\nxy", "1\r\nx\n0\r\n", "1\r\nx\r0\r\n", "1\r\nx0\r\n\r\n", "5\r\nhello0\r\n\r\n",
            "11111111111111111\r\n", "00000000000000001\r\nx", "ffffffffffffffff\r\n",
            "8000000000000000\r\n", "20000000000001\r\n", "1\r\nx\r\n\r\n", "1\r\nx\r\n;\r\n",
            ";\r\n",
        ])
    func refusesChunks(_ body: String) {
        #expect(decode(body) == .malformed)
    }

    @Test("W2: extensions are bounded, on one chunk and over the body")
    func boundsExtensions() {
        func chunk(_ count: Int) -> String { "1;\(String(repeating: "a", count: count))\r\nx\r\n" }
        #expect(decode(chunk(254) + "0\r\n\r\n") != .malformed)
        #expect(decode(chunk(255) + "0\r\n\r\n") == .malformed)
        let many = String(repeating: chunk(254), count: 64)
        #expect(decode(many + "0\r\n\r\n") != .malformed)
        #expect(decode(many + chunk(1)) == .malformed)
    }

    @Test(
        "W2: an unfinished body is never complete",
        arguments: [
            "", "5", "5\r", "5\r\nhell", "5\r\nhello\r\n", "0\r\n", "0\r\n\r", "0\r\nA: b\r\n",
        ])
    func waits(_ body: String) {
        guard case .incomplete = decode(body) else {
            Issue.record("not incomplete: \(decode(body))")
            return
        }
    }

    @Test("The largest chunk is one of 2^53 bytes")
    func acceptsHugeChunk() {
        #expect(decode("20000000000000\r\nabc") == .incomplete(content: bytes("abc")))
    }

    @Test("Trailers that say something about the content or the call pass")
    func keepsTrailers() {
        let body =
            "0\r\ngrpc-status: 0\r\nGrpc-Message:  \tok \r\ngrpc-status-details-bin: AA==\r\n"
            + "x-checksum:\r\nContent-Digest: d\r\nServer-Timing: t\r\n\r\n"
        let expected = complete(
            "",
            trailers: [
                ["grpc-status", "0"], ["Grpc-Message", "ok"], ["grpc-status-details-bin", "AA=="],
                ["x-checksum", ""], ["Content-Digest", "d"], ["Server-Timing", "t"],
            ], length: bytes(body).count)
        #expect(decode(body) == expected)
    }

    @Test(
        "W8: trailers about framing, routing, credentials, forwarding or processing are dropped",
        arguments: [
            "Content-Length", "Transfer-Encoding", "Host", "Connection", "TE", "Trailer", "Upgrade",
            "X-Firebase-AppCheck", "x_firebase_appcheck", "X-AppCheck-Verdict", "X_AppCheck_App",
            "Authorization", "Cookie", "Set-Cookie", "Set_Cookie", "Proxy-Authorization",
            "WWW-Authenticate", "X-Forwarded-For", "X-Forwarded-Anything", "Forwarded", "X-Real-IP",
            "X-Original-URL", "Via", "X-Request-Id", "Content-Type", "Content-Encoding",
            "Content-Range", "Cache-Control", "Expect", "If-Match", "Max-Forwards", "Range", "Date",
            "Age", "Vary", "Location", "Expires", "Origin", "X-HTTP-Method-Override",
            "Access-Control-Allow-Origin", "traceparent", "User-Agent",
        ])
    func dropsTrailers(_ name: String) {
        let body = "1\r\nx\r\n0\r\na: 1\r\n\(name): 5\r\n\(name.uppercased()): 5\r\nb: 2\r\n\r\n"
        let expected = complete(
            "x", trailers: [["a", "1"], ["b", "2"]], length: bytes(body).count)
        #expect(decode(body) == expected)
    }

    @Test(
        "W8: refuses broken trailers",
        arguments: [
            "A: b\n\r\n", "A: b\rc\r\n\r\n", "A : b\r\n\r\n", ": b\r\n\r\n", "A\r\n\r\n",
            "A: b\r\n c\r\n\r\n", "A: \u{0}\r\n\r\n", "\r\r\n", "\n",
            "A: " + String(repeating: "b", count: 8200) + "\r\n\r\n",
            String(repeating: "A: b\r\n", count: 65) + "\r\n",
        ])
    func refusesTrailers(_ trailers: String) {
        #expect(decode("0\r\n" + trailers) == .malformed)
    }

    @Test("Trailers may be many, within the bound")
    func boundsTrailers() {
        let body = "0\r\n" + String(repeating: "A: b\r\n", count: 64) + "\r\n"
        let expected = complete(
            "", trailers: Array(repeating: ["A", "b"], count: 64), length: bytes(body).count)
        #expect(decode(body) == expected)
    }

    @Test("A body of known length ends after it")
    func decodesLength() {
        #expect(decode("hello, world", .length(5)) == complete("hello", length: 5))
        #expect(decode("hell", .length(5)) == .incomplete(content: bytes("hell")))
        #expect(decode("GET /", .length(0)) == complete("", length: 0))
        #expect(decode("GET /", .none) == complete("", length: 0))
        let huge = BodyFraming.length(UInt64(Int64.max))
        #expect(decode("abc", huge) == .incomplete(content: bytes("abc")))
    }

    @Test("A body that ends with its connection takes everything and never says so")
    func decodesUntilClose() {
        #expect(decode("0\r\n\r\nabc", .untilClose) == .incomplete(content: bytes("0\r\n\r\nabc")))
        #expect(decode("", .untilClose) == .incomplete(content: []))
    }

    @Test("Content may be taken in part")
    func takesContentInPart() throws {
        var decoder = BodyDecoder(.chunked)
        let input = bytes("5\r\nhello\r\n0\r\n\r\nnext")
        #expect(try decoder.next(input.span) == .content(skip: 3, count: 5))
        #expect(try decoder.next(input.span.extracting(3...)) == .content(skip: 0, count: 5))
        decoder.consumed(2)
        #expect(try decoder.next(input.span.extracting(5...)) == .content(skip: 0, count: 3))
        decoder.consumed(3)
        #expect(try decoder.next(input.span.extracting(8...)) == .end(skip: 7))
        #expect(try decoder.next(input.span.extracting(15...)) == .end(skip: 0))
    }
}
