import HTTP
import Reactor
import Testing

@Suite("Writing")
struct WritingTests {
    private func written(_ body: (ByteBuffer) -> Void) -> String {
        let buffer = ByteBuffer(capacity: 64)
        body(buffer)
        return buffer.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    @Test("Writes a head line by line")
    func writesHead() {
        let name = bytes("X-Name")
        let value = bytes("some value")
        let head = written { buffer in
            buffer.appendStatusLine(404)
            buffer.appendField(name.span, value.span)
            buffer.appendField("Via", value.span)
            buffer.appendField("Connection", "close")
            buffer.appendField("Content-Length", decimal: 18_446_744_073_709_551_615)
            buffer.appendLineEnd()
        }
        let expected =
            "HTTP/1.1 404 Not Found\r\nX-Name: some value\r\nVia: some value\r\n"
            + "Connection: close\r\nContent-Length: 18446744073709551615\r\n\r\n"
        #expect(head == expected)
    }

    @Test("Keeps a backend's reason phrase")
    func keepsReason() {
        let reason = bytes("I'm a teapot")
        #expect(
            written { $0.appendStatusLine(418, reason: reason.span) }
                == "HTTP/1.1 418 I'm a teapot\r\n")
    }

    @Test("Every status code has a reason phrase", arguments: 100...599)
    func namesStatus(_ status: Int) throws {
        let line = written { $0.appendStatusLine(UInt16(status)) }
        let input = bytes(line + "\r\n")
        var parser = ResponseParser(limits: HeadLimits())
        var head = ResponseHead()
        let isComplete = try parser.parse(input.span, requestMethod: .get, into: &head)
        #expect(isComplete && Int(head.status) == status && !head.reason.isEmpty)
    }

    @Test(
        "Writes the size of a chunk",
        arguments: [
            (1, "1"), (9, "9"), (10, "a"), (15, "f"), (16, "10"), (255, "ff"), (4096, "1000"),
            (65_535, "ffff"), (1 << 53, "20000000000000"), (Int.max, "7fffffffffffffff"),
        ])
    func writesChunkHeader(_ count: Int, _ digits: String) {
        #expect(written { $0.appendChunkHeader(count) } == digits + "\r\n")
    }

    @Test("Ends a chunked body with its trailers")
    func writesLastChunk() {
        #expect(written { $0.appendLastChunk() } == "0\r\n\r\n")
        let trailers = [(name: bytes("grpc-status"), value: bytes("0"))]
        #expect(
            written { $0.appendLastChunk(trailers: trailers) } == "0\r\ngrpc-status: 0\r\n\r\n")
    }

    @Test(
        "Writes dates in the form that HTTP wants",
        arguments: [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (-1, "Thu, 01 Jan 1970 00:00:00 GMT"), (Int64.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
            (Int64.min, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ] as [(Int64, String)])
    func writesDates(_ second: Int64, _ expected: String) {
        var date = DateStamp()
        for _ in 0..<2 {
            #expect(
                written { date.appendField(to: $0, unixSeconds: second) }
                    == "Date: \(expected)\r\n")
        }
        #expect(
            written { date.appendField(to: $0, unixSeconds: 0) }
                == "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n")
    }
}
