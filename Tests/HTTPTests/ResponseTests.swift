import HTTP
import TestKit
import Testing

@Suite("Responses")
struct ResponseTests {
    private func response(_ startLine: String, _ fields: String...) -> String {
        ([startLine] + fields).joined(separator: "\r\n") + "\r\n\r\n"
    }

    @Test(
        "Reads a status line with or without a reason",
        arguments: [
            Case("HTTP/1.1 200 OK", "OK"), Case("HTTP/1.1 200 ", ""), Case("HTTP/1.1 200", ""),
            Case("HTTP/1.0 599 a b\tc", "a b\tc"), Case("HTTP/1.1 100  x", " x"),
            Case("HTTP/1.1 600 x", "x"), Case("HTTP/1.1 999 Request Denied", "Request Denied"),
        ])
    func readsStatusLine(_ row: Case<String>) throws {
        let message = try responseVerdict(response(row.input)).accepted()
        #expect(text(message.reason) == row.expected)
        #expect(UInt16(row.input.split(separator: " ")[1]) == message.status)
    }

    @Test(
        "W10: refuses what could be split, smuggled or misread",
        arguments: [
            Case("HTTP/1.1 20 OK", .status), Case("HTTP/1.1 2000 OK", .status),
            Case("HTTP/1.1 099 x", .status), Case("HTTP/1.1 2x0 x", .status),
            Case("HTTP/1.1 +20 x", .status), Case("HTTP/1.1  200 x", .status),
            Case("HTTP/1.1\t200 OK", .status), Case("HTTP/1.1 200\tOK", .status),
            Case("HTTP/1.1", .status), Case("HTTP/1.1 200 O\rK", .startLine),
            Case("HTTP/1.1 200 O\u{0}K", .startLine), Case("HTTP/2.0 200 OK", .version),
            Case("HTTP/1.2 200 OK", .version), Case("http/1.1 200 OK", .startLine),
            Case("<html>", .startLine), Case("ICY 200 OK", .startLine),
            Case("\r\nHTTP/1.1 200 OK", .startLine), Case("HTTP/1.1 200 OK\nA: b", .bareLineFeed),
            Case("HTTP/1.1 200 OK\r\nA: b\nC: d", .bareLineFeed),
            Case("HTTP/1.1 200 OK\r\nA: b\rC: d", .fieldValue),
            Case("HTTP/1.1 200 OK\r\nA: b\u{0}", .fieldValue),
            Case("HTTP/1.1 200 OK\r\nA : b", .fieldName),
            Case("HTTP/1.1 200 OK\r\n: b", .fieldName),
            Case("HTTP/1.1 200 OK\r\nA: b\r\n c", .obsoleteFold),
            Case("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5", .contentLength),
            Case("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6", .contentLength),
            Case("HTTP/1.1 200 OK\r\nContent-Length: 5, 5", .contentLength),
            Case("HTTP/1.1 200 OK\r\nContent-Length: -1", .contentLength),
            Case("HTTP/1.1 204 No\r\nContent-Length: x", .contentLength),
            Case(
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
                .transferEncoding),
            Case("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked", .transferEncoding),
            Case("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity", .transferEncoding),
            Case("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked", .transferEncoding),
        ] as [Case<MalformedMessage.Kind>])
    func refuses(_ row: Case<MalformedMessage.Kind>) {
        #expect(responseVerdict(response(row.input)) == .malformed(row.expected))
    }

    @Test(
        "W4: HEAD, 1xx, 204 and 304 have no body, whatever their fields say",
        arguments: [
            Case("HTTP/1.1 200 OK|Content-Length: 5", [.length(5), BodyFraming.none]),
            Case("HTTP/1.1 200 OK|Content-Length: 005", [.length(5), .none]),
            Case("HTTP/1.1 200 OK|Transfer-Encoding: chunked", [.chunked, .none]),
            Case("HTTP/1.1 200 OK", [.untilClose, .none]),
            Case("HTTP/1.1 200 OK|Content-Length: 0", [.none, .none]),
            Case("HTTP/1.1 100 Continue", [.none, .none]),
            Case("HTTP/1.1 101 Switching", [.none, .none]),
            Case("HTTP/1.1 103 Hints|Link: x", [.none, .none]),
            Case("HTTP/1.1 204 No Content|Content-Length: 5", [.none, .none]),
            Case("HTTP/1.1 304 Not Modified|Content-Length: 5", [.none, .none]),
            Case("HTTP/1.1 304 Not Modified|Transfer-Encoding: chunked", [.none, .none]),
            Case("HTTP/1.1 500 Oops|Content-Length: 5", [.length(5), .none]),
        ])
    func framesBodies(_ row: Case<[BodyFraming]>) throws {
        let message = row.input.replacing("|", with: "\r\n") + "\r\n\r\n"
        #expect(try responseVerdict(message, to: .get).accepted().framing == row.expected[0])
        #expect(try responseVerdict(message, to: .head).accepted().framing == row.expected[1])
    }

    @Test(
        "W10: a connection is used again only when the end of the answer is beyond doubt",
        arguments: [
            Case("HTTP/1.1 200 OK|Content-Length: 5", true),
            Case("HTTP/1.1 200 OK|Transfer-Encoding: chunked", true),
            Case("HTTP/1.1 200 OK|Content-Length: 5|Connection: close", false),
            Case("HTTP/1.0 200 OK|Content-Length: 5", false),
            Case("HTTP/1.0 200 OK|Content-Length: 5|Connection: Keep-Alive", true),
            Case("HTTP/1.1 200 OK", false), Case("HTTP/1.1 204 No Content", true),
            Case("HTTP/1.1 204 No Content|Content-Length: 0", true),
            Case("HTTP/1.1 204 No Content|Content-Length: 5", false),
            Case("HTTP/1.1 204 No Content|Transfer-Encoding: chunked", false),
            Case("HTTP/1.1 304 Not Modified|Content-Length: 5", true),
        ])
    func persists(_ row: Case<Bool>) throws {
        let message = row.input.replacing("|", with: "\r\n") + "\r\n\r\n"
        #expect(try responseVerdict(message).accepted().isPersistent == row.expected)
    }

    @Test("Marks fields about the upstream connection, and protects the others")
    func marksHopByHop() throws {
        let message = try responseVerdict(
            response(
                "HTTP/1.1 200 OK", "Connection: x-a, Content-Length, date", "X-A: 1",
                "Keep-Alive: timeout=5", "Content-Length: 0", "Date: x", "Proxy-Authenticate: x",
                "Upgrade: h2c", "X_AppCheck_Verdict: x", "Trailer: x")
        ).accepted()
        let marks = message.fields.map { $0.isHopByHop }
        #expect(marks == [true, true, true, false, false, true, true, false, false])
        #expect(message.fields[7].known == .other)
    }

    @Test(
        "W4: a length goes no further where no body can follow",
        arguments: [
            Case("HTTP/1.1 204 No Content", true), Case("HTTP/1.1 103 Early Hints", true),
            Case("HTTP/1.1 304 Not Modified", false), Case("HTTP/1.1 200 OK", false),
        ])
    func dropsLength(_ row: Case<Bool>) throws {
        let message = try responseVerdict(response(row.input, "Content-Length: 5")).accepted()
        #expect(message.fields[0].isHopByHop == row.expected)
    }

    @Test("H8: heads of responses are bounded too")
    func boundsHeads() {
        let limits = HeadLimits(bytes: 200, fields: 2, target: 10)
        #expect(
            responseVerdict(response("HTTP/1.1 200 OK", "A: 1", "B: 2", "C: 3"), limits: limits)
                == .malformed(.tooManyFields))
        let long = response("HTTP/1.1 200 OK", "A: " + String(repeating: "x", count: 200))
        #expect(responseVerdict(long, limits: limits) == .malformed(.headTooLarge))
        let longReason = response("HTTP/1.1 200 " + String(repeating: "x", count: 150))
        #expect(responseVerdict(longReason, limits: limits) != .malformed(.targetTooLong))
    }
}
