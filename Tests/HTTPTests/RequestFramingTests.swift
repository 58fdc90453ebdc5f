import HTTP
import TestKit
import Testing

@Suite("Request framing")
struct RequestFramingTests {
    @Test(
        "W1: refuses every ambiguous framing",
        arguments: [
            Case("Content-Length: 5\r\nTransfer-Encoding: chunked", .transferEncoding),
            Case("Transfer-Encoding: chunked\r\nContent-Length: 5", .transferEncoding),
            Case("Content-Length: 5\r\nContent-Length: 5", .contentLength),
            Case("Content-Length: 5\r\ncontent-length: 6", .contentLength),
            Case("Content-Length: +5", .contentLength),
            Case("Content-Length: -5", .contentLength),
            Case("Content-Length: 0x5", .contentLength),
            Case("Content-Length: 5,5", .contentLength),
            Case("Content-Length: 5 5", .contentLength),
            Case("Content-Length: 05", .contentLength),
            Case("Content-Length: 5\t", .contentLength),
            Case("Content-Length: 5 ", .contentLength),
            Case("Content-Length:\t5", .contentLength),
            Case("Content-Length:", .contentLength),
            Case("Content-Length: ", .contentLength),
            Case("Content-Length: 9223372036854775808", .contentLength),
            Case("Content-Length: 18446744073709551616", .contentLength),
            Case("Content-Length: 99999999999999999999999", .contentLength),
            Case("Transfer-Encoding: chunked\t", .transferEncoding),
            Case("Transfer-Encoding: chunked ", .transferEncoding),
            Case("Transfer-Encoding:\u{0B}chunked", .fieldValue),
            Case("Transfer-Encoding: xchunked", .transferEncoding),
            Case("Transfer-Encoding: chunked, identity", .transferEncoding),
            Case("Transfer-Encoding: identity, chunked", .transferEncoding),
            Case("Transfer-Encoding: chunked, chunked", .transferEncoding),
            Case("Transfer-Encoding: chunked;a=b", .transferEncoding),
            Case("Transfer-Encoding: \"chunked\"", .transferEncoding),
            Case("Transfer-Encoding: identity", .transferEncoding),
            Case("Transfer-Encoding: gzip, chunked", .transferEncoding),
            Case("Transfer-Encoding:", .transferEncoding),
            Case("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", .transferEncoding),
            Case("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", .transferEncoding),
            Case("Transfer-Encoding : chunked", .fieldName),
            Case("Transfer-Encoding\t: chunked", .fieldName),
            Case("Content-Length\u{0}: 5", .fieldName),
            Case(" Content-Length: 5", .obsoleteFold),
        ] as [Case<MalformedMessage.Kind>])
    func refusesAmbiguity(_ row: Case<MalformedMessage.Kind>) {
        #expect(verdict(head("POST / HTTP/1.1", row.input)) == .malformed(row.expected))
        #expect(MalformedMessage(row.expected).status == 400)
    }

    @Test("W1: refuses a transfer coding on HTTP/1.0")
    func refusesCodingOnHTTP10() {
        let request = head("POST / HTTP/1.0", "Transfer-Encoding: chunked")
        #expect(verdict(request) == .malformed(.transferEncoding))
    }

    @Test(
        "W4: a body is delimited in one way, whatever the method",
        arguments: ["GET", "HEAD", "POST", "DELETE", "OPTIONS", "PROPFIND"])
    func framesBodies(_ method: String) throws {
        let start = "\(method) / HTTP/1.1"
        #expect(try verdict(head(start)).accepted().framing == .none)
        #expect(try verdict(head(start, "Content-Length: 0")).accepted().framing == .none)
        #expect(try verdict(head(start, "Content-Length: 48")).accepted().framing == .length(48))
        #expect(
            try verdict(head(start, "content-length:   9223372036854775807")).accepted().framing
                == .length(9_223_372_036_854_775_807))
        #expect(
            try verdict(head(start, "transfer-encoding: ChunkeD")).accepted().framing == .chunked)
    }

    @Test("W11: the length of a head is where its body or the next request starts")
    func findsTheNextRequest() throws {
        let first = head("GET /1 HTTP/1.1")
        let second = head("POST /2 HTTP/1.1", "Content-Length: 2")
        let input = bytes(first + second + "ok")
        var parser = RequestParser(limits: HeadLimits())
        var request = RequestHead()
        let isFirst = try parser.parse(input.span, into: &request)
        #expect(isFirst && request.length == first.utf8.count)
        let rest = Array(input[request.length...])
        let isSecond = try parser.parse(rest.span, into: &request)
        #expect(isSecond && request.length == second.utf8.count)
        #expect(request.method == .post && request.framing == .length(2))
        #expect(request.fields.lines.count == 2)
    }

    @Test("W11: a head leaves nothing behind for the next one on the connection")
    func forgetsTheLastRequest() throws {
        var parser = RequestParser(limits: HeadLimits())
        var request = RequestHead()
        let rich = bytes(
            "GET http://API.example/%61?q HTTP/1.1\r\nHost: api.example:80\r\nTE: trailers\r\n"
                + "Connection: close, upgrade\r\nUpgrade: websocket\r\nX-Firebase-AppCheck: t\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        let isRich = try parser.parse(rich.span, into: &request)
        #expect(isRich && request.wantsWebSocket && request.acceptsTrailers)
        let plain = bytes("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        let isPlain = try parser.parse(plain.span, into: &request)
        #expect(isPlain && request.isPersistent && !request.wantsWebSocket)
        #expect(!request.acceptsTrailers && request.target.host.isEmpty)
        #expect(request.target.port == nil && !request.target.hasQuery)
        #expect(!request.target.isRewritten && request.target.form == .origin)
        #expect(!request.fields.contains(.appCheckToken))
    }

    @Test("A refused head does not stop the parser from reading another connection's")
    func recoversAfterReset() throws {
        var parser = RequestParser(limits: HeadLimits())
        var request = RequestHead()
        let broken = bytes("GET / HTTP/1.1\r\nHost: a\n")
        #expect(throws: MalformedMessage(.bareLineFeed)) {
            _ = try parser.parse(broken.span, into: &request)
        }
        parser.reset()
        let good = bytes(head("GET / HTTP/1.1"))
        let isComplete = try parser.parse(good.span, into: &request)
        #expect(isComplete)
    }
}
