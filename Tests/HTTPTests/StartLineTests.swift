import HTTP
import TestKit
import Testing

@Suite("Request line")
struct StartLineTests {
    @Test(
        "Refuses what is no request line",
        arguments: [
            Case("GET /", .version), Case("GET", .method), Case("GET ", .target),
            Case(" GET / HTTP/1.1", .startLine), Case("GET  / HTTP/1.1", .target),
            Case("GET\t/ HTTP/1.1", .method), Case("G\u{0}T / HTTP/1.1", .method),
            Case("G@T / HTTP/1.1", .method), Case("GÉT / HTTP/1.1", .method),
            Case("GET / HTTP/1.1 ", .startLine), Case("GET / x HTTP/1.1", .startLine),
            Case("GET / HTTP/1.1x", .startLine), Case("GET / http/1.1", .startLine),
            Case("GET / HTTP/11", .startLine), Case("GET / HTTP/1.", .startLine),
            Case("GET / HTTP/0.9", .version), Case("GET / HTTP/1.2", .version),
            Case("GET / HTTP/2.0", .version), Case("GET / HTTP/3.0", .version),
            Case("PRI * HTTP/2.0", .target), Case("\u{16}\u{3}\u{1}", .startLine),
        ] as [Case<MalformedMessage.Kind>])
    func refusesOtherLines(_ row: Case<MalformedMessage.Kind>) {
        #expect(verdict(head(row.input)) == .malformed(row.expected))
    }

    @Test("An unknown version is answered with 505")
    func answersVersions() {
        #expect(MalformedMessage(.version).status == 505)
    }

    @Test(
        "P4: CONNECT and TRACE are refused with 405, in any form",
        arguments: ["CONNECT api.example:443", "CONNECT /", "TRACE /", "TRACE *"])
    func refusesTunnels(_ start: String) {
        #expect(verdict(head("\(start) HTTP/1.1")) == .malformed(.connectMethod))
        #expect(MalformedMessage(.connectMethod).status == 405)
    }

    @Test(
        "P8: knows the common methods by their exact name",
        arguments: [
            Case("GET", .get), Case("HEAD", .head), Case("POST", .post), Case("PUT", .put),
            Case("DELETE", .delete), Case("OPTIONS", .options), Case("PATCH", .patch),
            Case("PROPFIND", .other), Case("M-SEARCH", .other), Case("GETS", .other),
            Case("X", .other),
        ] as [Case<HTTP.Method>])
    func readsMethods(_ row: Case<HTTP.Method>) throws {
        let input = bytes(head("\(row.input) / HTTP/1.1"))
        var parser = RequestParser(limits: HeadLimits())
        var request = RequestHead()
        let isComplete = try parser.parse(input.span, into: &request)
        #expect(isComplete && request.method == row.expected)
        #expect(text(Array(input[0..<request.methodName.end])) == row.input)
    }

    @Test(
        "P8: refuses a common method in other letters, which some backends would still obey",
        arguments: ["get", "Post", "pUT", "delete", "Options", "connect", "trace", "head", "patch"])
    func refusesMiswrittenMethods(_ method: String) {
        #expect(verdict(head("\(method) / HTTP/1.1")) == .malformed(.method))
    }

    @Test("P8: method override fields change nothing")
    func ignoresOverrides() throws {
        let request = try verdict(
            head("GET / HTTP/1.1", "X-HTTP-Method-Override: POST", "X-Method-Override: DELETE")
        ).accepted()
        #expect(text(request.method) == "GET")
        #expect(request.fields.dropFirst().allSatisfy { $0.known == .other })
    }

    @Test("Skips up to two empty lines before a request line")
    func skipsEmptyLines() throws {
        let request = head("GET / HTTP/1.1")
        for count in 0...2 {
            let prefix = String(repeating: "\r\n", count: count)
            let length = try verdict(prefix + request).accepted().length
            #expect(length == (prefix + request).utf8.count)
        }
        #expect(verdict("\r\n\r\n\r\n" + request) == .malformed(.startLine))
        #expect(verdict("\n" + request) == .malformed(.bareLineFeed))
        #expect(verdict("\r\r\n" + request) == .malformed(.method))
        #expect(verdict("\r\n") == .incomplete)
    }
}
