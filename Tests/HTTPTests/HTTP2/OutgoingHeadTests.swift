import CNGHTTP2
import Testing

@testable import HTTP

@Suite("Heads that go out over HTTP/2")
struct OutgoingHeadTests {
    private static func fields(of head: OutgoingHead, isSecure: Bool = true) -> [String] {
        var fields: [String] = []
        head.withFields(isSecure: isSecure) { list, count in
            for field in UnsafeBufferPointer(start: list, count: count) {
                let name = UnsafeBufferPointer(start: field.name, count: field.namelen)
                let value = UnsafeBufferPointer(start: field.value, count: field.valuelen)
                fields.append(
                    "\(String(decoding: name, as: UTF8.self))="
                        + String(decoding: value, as: UTF8.self))
            }
        }
        return fields
    }

    private static func take(
        _ text: String, of kind: OutgoingHead.Kind, into head: OutgoingHead
    ) throws -> OutgoingHead.Progress {
        try Array(text.utf8).withUnsafeBytes { bytes in try head.take(bytes, of: kind) }
    }

    @Test("a request's fields are in small letters, and those of the connection are not among them")
    func request() throws {
        let head = OutgoingHead()
        let text = """
            POST /a?b=c HTTP/1.1\r\nHost: example.com\r\nX-Name:  Value \r\n\
            Connection: TE\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\
            X_Odd.Name: 1\r\nEmpty:\r\n\r\n
            """
        guard case .final(let count, .chunked) = try Self.take(text, of: .request, into: head)
        else {
            Issue.record("not complete")
            return
        }
        #expect(count == text.utf8.count)
        #expect(
            Self.fields(of: head) == [
                ":method=POST", ":scheme=https", ":path=/a?b=c", ":authority=example.com",
                "x-name=Value", "te=trailers", "x_odd.name=1", "empty=",
            ])
    }

    @Test("a head in two pieces is taken with the second, and its memory serves the next one")
    func pieces() throws {
        let head = OutgoingHead()
        for _ in 0..<2 {
            let first = "GET / HTTP/1.1\r\nHost: a\r", second = "\n\r\nbody"
            guard case .incomplete = try Self.take(first, of: .request, into: head),
                case .final(3, .none) = try Self.take(second, of: .request, into: head)
            else {
                Issue.record("wrong progress")
                return
            }
            #expect(Self.fields(of: head, isSecure: false).contains(":scheme=http"))
            head.reset()
        }
    }

    /// A status, the request's method, a field line, and how content follows.
    private static let responses: [(Int, Method, String, BodyFraming)] = [
        (200, .get, "Content-Length: 5", .length(5)), (200, .get, "Content-Length: 0", .none),
        (200, .get, "Transfer-Encoding: chunked", .chunked), (200, .get, "A: b", .untilClose),
        (200, .head, "Content-Length: 5", .none), (204, .get, "A: b", .none),
        (304, .get, "Content-Length: 5", .none),
    ]

    @Test("a response says how its content ends", arguments: responses)
    func response(status: Int, method: Method, line: String, framing: BodyFraming) throws {
        let head = OutgoingHead()
        let kind = OutgoingHead.Kind.response(to: method, opensWebSocket: false)
        let text = "HTTP/1.1 \(status) Reason\r\n\(line)\r\n\r\n"
        guard case .final(text.utf8.count, framing) = try Self.take(text, of: kind, into: head)
        else {
            Issue.record("wrong progress")
            return
        }
        #expect(Self.fields(of: head).first == ":status=\(status)")
    }

    @Test("101 is 200 where a WebSocket was asked for, and else an interim response")
    func switching() throws {
        let text = "HTTP/1.1 101 \r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n"
        let head = OutgoingHead()
        let asked = OutgoingHead.Kind.response(to: .get, opensWebSocket: true)
        guard case .final(_, .untilClose) = try Self.take(text, of: asked, into: head) else {
            Issue.record("not final")
            return
        }
        #expect(Self.fields(of: head) == [":status=200"])
        head.reset()
        let other = OutgoingHead.Kind.response(to: .get, opensWebSocket: false)
        guard case .interim(text.utf8.count) = try Self.take(text, of: other, into: head) else {
            Issue.record("not interim")
            return
        }
    }

    @Test(
        "what is no head is refused",
        arguments: ["GET /\r\n\r\n", "/ HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n"])
    func refuses(text: String) {
        #expect(throws: MalformedMessage.self) {
            _ = try Self.take(text, of: .request, into: OutgoingHead())
        }
    }

    @Test("credentials stay out of the compression table")
    func credentials() throws {
        let head = OutgoingHead()
        let text = "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\nX-Firebase-AppCheck: c\r\n\r\n"
        _ = try Self.take(text, of: .request, into: head)
        head.withFields(isSecure: true) { list, count in
            let flags = UnsafeBufferPointer(start: list, count: count).map(\.flags)
            #expect(flags.suffix(2) == [UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)].repeated(2))
        }
    }
}

extension Array {
    fileprivate func repeated(_ count: Int) -> Self { (0..<count).flatMap { _ in self } }
}
