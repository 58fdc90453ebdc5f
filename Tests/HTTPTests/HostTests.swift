import HTTP
import TestKit
import Testing

@Suite("Host")
struct HostTests {
    private func outcome(_ host: String) -> MessageOutcome<RequestCopy> {
        verdict("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")
    }

    @Test(
        "P5: every accepted spelling of a host has one canonical form",
        arguments: [
            Case("example.com", "example.com"), Case("EXAMPLE.com", "example.com"),
            Case("example.com.", "example.com"), Case("example.com:443", "example.com"),
            Case("EXAMPLE.com.:8443", "example.com"), Case("localhost", "localhost"),
            Case("my_service-1", "my_service-1"),
            Case("xn--bcher-kva.example", "xn--bcher-kva.example"),
            Case("127.0.0.1:80", "127.0.0.1"), Case("255.255.255.255", "255.255.255.255"),
            Case("1.2.3.4.", "1.2.3.4"), Case("1.example", "1.example"), Case("a.1b", "a.1b"),
            Case("3com", "3com"), Case("[::1]", "[::1]"), Case("[0:0:0:0:0:0:0:1]:80", "[::1]"),
            Case("[2001:DB8::0:1]", "[2001:db8::1]"), Case("[::]", "[::]"), Case("[1::]", "[1::]"),
            Case("[2001:db8:0:1:1:1:1:1]", "[2001:db8:0:1:1:1:1:1]"),
            Case("[2001:0:0:1:0:0:0:1]", "[2001:0:0:1::1]"),
            Case("[1:2:3:4:5:6:7::]", "[1:2:3:4:5:6:7:0]"),
            Case("[::ffff:192.0.2.1]", "[::ffff:c000:201]"), Case("[0001::00a0]", "[1::a0]"),
            Case("[1:2:3:4:5:6:1.2.3.4]", "[1:2:3:4:5:6:102:304]"),
        ])
    func canonicalises(_ row: Case<String>) throws {
        let request = try outcome(row.input).accepted()
        #expect(text(request.host) == row.expected)
        #expect(text(try outcome(row.expected).accepted().host) == row.expected)
    }

    @Test(
        "P5: the port is told apart from the host",
        arguments: [
            Case("a", nil), Case("a:1", 1), Case("a:80", 80), Case("a.:443", 443),
            Case("a:65535", 65535), Case("[::1]:8080", 8080), Case("[::1]", nil),
        ] as [Case<UInt16?>])
    func readsPort(_ row: Case<UInt16?>) throws {
        #expect(try outcome(row.input).accepted().port == row.expected)
    }

    @Test("P5: a head that served another request before understands each host as a new one does")
    func rereadsHosts() {
        var generator = SeededGenerator(seed: 20_261_130)
        let hosts = [
            "a.example", "A.example", "a.example:80", "a.example:81", "127.0.0.1", "127.0.0.1:1",
            "127.1", "", "a..b", "[::1]", "[::1]:5", "[::1", "b",
        ]
        var reused = RequestHead()
        for _ in 0..<2_000 {
            let target = ["/", "http://a.example/"].randomElement(using: &generator) ?? ""
            let version = Int.random(in: 0...1, using: &generator)
            let host = hosts.randomElement(using: &generator) ?? ""
            let field = Bool.random(using: &generator) ? "Host: \(host)\r\n" : ""
            let input = bytes("GET \(target) HTTP/1.\(version)\r\n\(field)\r\n")
            var fresh = RequestHead()
            #expect(isRead(input, into: &reused) == isRead(input, into: &fresh), "\(text(input))")
            #expect(
                reused.target.host == fresh.target.host && reused.target.port == fresh.target.port,
                "\(text(input))")
        }
    }

    private func isRead(_ input: [UInt8], into head: inout RequestHead) -> Bool {
        var parser = RequestParser(limits: HeadLimits(bytes: 4096, fields: 10))
        return (try? parser.parse(input.span, into: &head)) ?? false
    }

    @Test(
        "P5: refuses every other spelling",
        arguments: [
            "", "user@example.com", "user:pw@example.com", "example.com/", "example.com?",
            "example.com#", "example..com", ".example.com", ".", "example.com..", ":80", "a:",
            "a:0",
            "a:080", "a:65536", "a:123456", "a:+80", "a:8x", "a:80:80", "a b", "a,b", "a%2eb",
            "a%62", "b\u{FC}cher", "a\\b", "a;b", "*.a", "(a)", "127.1", "127.0.0.01",
            "127.0.0.256",
            "0x7f.0.0.1.0x1", "2130706433", "1.2.3", "1.2.3.4.5", "0x7f000001", "1.2.3.0x4", "[",
            "[]",
            "[::1", "::1", "2001:db8::1", "[:1]", "[:::]", "[1:2]", "[1::2::3]",
            "[1:2:3:4:5:6:7:8:9]", "[1:2:3:4:5:6:7:8::]", "[12345::]", "[::g]", "[::1%25eth0]",
            "[fe80::1%eth0]", "[v1.a]", "[::1.2.3]", "[::1.2.3.4:1]", "[1.2.3.4]", "[::1]a",
            "[::1]:",
            "[::1]:x", "[1:]", "[1:2:3:4:5:6:7:1.2.3.4]", "\"a\"", "a.b\u{0}", "http://a",
            String(repeating: "a", count: 64), String(repeating: "a.", count: 127) + "ab",
        ])
    func refuses(_ host: String) {
        let expected: MalformedMessage.Kind = host.contains("\u{0}") ? .fieldValue : .host
        #expect(outcome(host) == .malformed(expected))
    }

    @Test("P5: longest labels and names pass")
    func acceptsLongNames() throws {
        let label = String(repeating: "a", count: 63)
        #expect(text(try outcome(label).accepted().host) == label)
        let name = String(repeating: "a.", count: 126) + "a"
        #expect(text(try outcome(name).accepted().host) == name)
    }

    @Test("P5: there is one Host, or none on HTTP/1.0")
    func countsHosts() throws {
        let two = "Host: a\r\nhost: a\r\n\r\n"
        #expect(verdict("GET / HTTP/1.1\r\n" + two) == .malformed(.host))
        #expect(verdict("GET / HTTP/1.0\r\n" + two) == .malformed(.host))
        #expect(verdict("GET / HTTP/1.1\r\n\r\n") == .malformed(.host))
        #expect(verdict("GET http://a/ HTTP/1.1\r\n\r\n") == .malformed(.host))
        #expect(verdict("GET / HTTP/1.0\r\nHost:\r\n\r\n") == .malformed(.host))
        #expect(try verdict("GET / HTTP/1.0\r\n\r\n").accepted().host.isEmpty)
        let absolute = try verdict("GET http://A.example:81/ HTTP/1.0\r\n\r\n").accepted()
        #expect(text(absolute.host) == "a.example" && absolute.port == 81)
    }
}
