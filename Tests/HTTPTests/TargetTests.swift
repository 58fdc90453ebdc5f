import HTTP
import TestKit
import Testing

@Suite("Request target")
struct TargetTests {
    private func path(_ target: String) throws -> String {
        text(try verdict(head("GET \(target) HTTP/1.1")).accepted().path)
    }

    @Test(
        "P1: writes a path in its one normal form",
        arguments: [
            Case("/", "/"), Case("/v1/transfers", "/v1/transfers"), Case("/admin/", "/admin/"),
            Case("/ADMIN", "/ADMIN"), Case("/%61dmin", "/admin"), Case("/%41%5a%30%2D", "/AZ0-"),
            Case("/a%7eb%5Fc", "/a~b_c"), Case("/v1/x%3Atransfer", "/v1/x:transfer"),
            Case("/u%40e%21%24%26%27%28%29%2a%2C%3d", "/u@e!$&'()*,="),
            Case("/a%2bb", "/a%2Bb"), Case("/a+b", "/a+b"), Case("/%c3%a9", "/%C3%A9"),
            Case("/a%20b", "/a%20b"), Case("/a%3fb%23", "/a%3Fb%23"), Case("/100%25", "/100%25"),
            Case("/%25x1", "/%25x1"), Case("/a|b", "/a%7Cb"), Case("/a%7cb", "/a%7Cb"),
            Case("/\"<>[]^`{}", "/%22%3C%3E%5B%5D%5E%60%7B%7D"), Case("/%c0", "/%C0"),
            Case("/%e0%a0%80", "/%E0%A0%80"), Case("/.well-known/a", "/.well-known/a"),
            Case("/a/...", "/a/..."), Case("/a/..b", "/a/..b"), Case("/a/b..", "/a/b.."),
            Case("/%2ewell-known", "/.well-known"), Case("/a.b/c", "/a.b/c"),
            Case("/~user/a:b@c,d=e", "/~user/a:b@c,d=e"),
            Case("/admin;x=1", "/admin;x=1"), Case("/admin%3b", "/admin%3B"),
            Case("//admin", "/admin"), Case("/public//admin", "/public//admin"),
            Case("/0123456789abcdef0123456789abcdef%61", "/0123456789abcdef0123456789abcdefa"),
        ])
    func normalises(_ row: Case<String>) throws {
        #expect(try path(row.input) == row.expected)
        #expect(try path(row.expected) == row.expected)
    }

    @Test(
        "P2: resolves dot segments, so that what is matched is what every backend reads",
        arguments: [
            Case("/public/../admin", "/admin"), Case("/public/%2e%2e/admin", "/admin"),
            Case("/public/%2E./admin", "/admin"), Case("/public/.%2e/admin", "/admin"),
            Case("/admin/.", "/admin/"), Case("/admin/..", "/"), Case("/./admin", "/admin"),
            Case("/%2e/admin", "/admin"), Case("/admin/%2E", "/admin/"), Case("/.", "/"),
            Case("/a/b/../../c", "/c"), Case("/a/./b/.", "/a/b/"), Case("/a//../b", "/a/b"),
            Case("/0123456789abcde/../x", "/x"), Case("/0123456789abcd/./x", "/0123456789abcd/x"),
            Case("/a/b/..", "/a/"), Case("/a/..b/../c", "/a/c"),
        ])
    func resolvesDotSegments(_ row: Case<String>) throws {
        #expect(try path(row.input) == row.expected)
        #expect(try path(row.expected) == row.expected)
    }

    @Test(
        "P2: never forwards a path that reads as a host and another path",
        arguments: [
            Case("//name/admin", "/name/admin"), Case("///name//admin", "/name//admin"),
            Case("//", "/"), Case("//%61", "/a"), Case("/.//name/admin", "/name/admin"),
            Case("/a/..//name/admin", "/name/admin"), Case("//%2e%2e//name", "/name"),
        ])
    func dropsLeadingEmptySegments(_ row: Case<String>) throws {
        #expect(try path(row.input) == row.expected)
        #expect(try path(row.expected) == row.expected)
    }

    @Test(
        "P2: refuses a path that somebody could read in another way",
        arguments: [
            "/public%2f..%2fadmin", "/..", "/../admin", "/a/../../admin", "/admin%00",
            "/admin%0a", "/admin%0D%0Ax", "/admin%1f", "/admin%7f",
            "/..;/admin", "/public/.;x/admin", "/public/..;", "/public\\..\\admin",
            "/public/..%3B/admin", "/public/.%2E%3bx/admin", "/public/..%20/admin",
            "/\\admin", "/admin%5c", "/%5Cadmin", "/%2561dmin", "/%252fadmin", "/%252e%252e/admin",
            "/%25%36%31dmin", "/%25%32f", "/%c0%ae%c0%ae/admin", "/%C0%AF", "/%c1%9c", "/%e0%80%af",
            "/%e0%9f%80", "/%f0%80%80%af", "/%", "/%6", "/%6g", "/%g6", "/%%61", "/a%u0061",
            "/%-1", "/%+1",
        ])
    func refuses(_ target: String) {
        #expect(verdict(head("GET \(target) HTTP/1.1")) == .malformed(.path))
        let absolute = head("GET http://api.example\(target) HTTP/1.1")
        #expect(verdict(absolute) == .malformed(.path))
    }

    @Test(
        "P3: a fragment is refused, and the query is no part of the path",
        arguments: ["/admin#x", "/#", "/a?b#c", "/%61#", "/a~#"])
    func refusesFragments(_ target: String) {
        #expect(verdict(head("GET \(target) HTTP/1.1")) == .malformed(.fragment))
    }

    @Test(
        "P3: the query is forwarded as it came",
        arguments: [
            Case("/a", nil), Case("/a?", ""), Case("/admin?x", "x"),
            Case("/?/../;%2f%zz", "/../;%2f%zz"),
            Case("/a?b=c&d[e]={f}|\"<>^`\\", "b=c&d[e]={f}|\"<>^`\\"), Case("/a??", "?"),
            Case("/%61?\(String(repeating: "q", count: 70))", String(repeating: "q", count: 70)),
        ] as [Case<String?>])
    func keepsQuery(_ row: Case<String?>) throws {
        let request = try verdict(head("GET \(row.input) HTTP/1.1")).accepted()
        #expect(request.query.map(text) == row.expected)
        #expect(!request.path.contains(UInt8(ascii: "?")))
    }

    @Test(
        "Bytes outside visible ASCII are refused in path and query",
        arguments: ["\u{0}", "\u{1}", "\t", "\u{B}", "\u{7F}", "\u{80}", "\u{E9}", "\u{FF}"])
    func refusesOtherBytes(_ character: String) {
        let long = String(repeating: "a", count: 20)
        for target in ["/\(character)", "/a\(character)b", "/\(long)\(character)\(long)"] {
            #expect(verdict(head("GET \(target) HTTP/1.1")) == .malformed(.target))
            let query = target.replacing("/", with: "/?")
            #expect(verdict(head("GET \(query) HTTP/1.1")) == .malformed(.target))
        }
    }

    @Test(
        "P4: an absolute-form target is forwarded by its path, if its authority is Host's",
        arguments: [
            Case("http://api.example/x?y", "/x"), Case("HTTP://API.EXAMPLE./x", "/x"),
            Case("http://api.example:80/%78", "/x"), Case("https://api.example:443/x", "/x"),
            Case("http://api.example", "/"), Case("http://api.example?q", "/"),
        ])
    func readsAbsoluteForm(_ row: Case<String>) throws {
        let request = try verdict(head("GET \(row.input) HTTP/1.1")).accepted()
        #expect(text(request.path) == row.expected)
        #expect(text(request.host) == "api.example")
        #expect((request.query != nil) == row.input.contains("?"))
    }

    @Test(
        "P4: refuses an absolute-form target that contradicts Host, or is none",
        arguments: [
            Case("http://other.example/", .host), Case("http://api.example:8080/", .host),
            Case("https://api.example:80/", .host), Case("http://user@api.example/", .host),
            Case("http://api.example@other/", .host), Case("http:///x", .host),
            Case("http://api.example\\@x/", .host), Case("http://%61pi.example/", .host),
            Case("ftp://api.example/", .target), Case("http:/api.example/", .target),
            Case("httpx://api.example/", .target), Case("api.example:443", .target),
            Case("api.example/x", .target), Case("?x", .target), Case("x", .target),
            Case("*", .target), Case("http://api.example#f", .fragment),
            Case("http://api.example/#f", .fragment),
        ] as [Case<MalformedMessage.Kind>])
    func refusesOtherForms(_ row: Case<MalformedMessage.Kind>) {
        #expect(verdict(head("GET \(row.input) HTTP/1.1")) == .malformed(row.expected))
    }

    @Test("P4: the asterisk is for OPTIONS alone, and absolute OPTIONS without path means it")
    func readsAsterisk() throws {
        #expect(text(try verdict(head("OPTIONS * HTTP/1.1")).accepted().path) == "*")
        let absolute = try verdict(head("OPTIONS http://api.example HTTP/1.1")).accepted()
        #expect(text(absolute.path) == "*")
        #expect(verdict(head("OPTIONS *x HTTP/1.1")) == .malformed(.target))
        #expect(verdict(head("OPTIONS *?x HTTP/1.1")) == .malformed(.target))
    }

    @Test("P1: random targets end in a normal form that is its own, or are refused")
    func normalisesRandomTargets() {
        var random = SeededGenerator(seed: 2026)
        let pieces = [
            "/", "/", "a", "Z", ".", "..", "%2e", "%2E", "%2f", "%5c", "%25", "%", "2", "e", "f",
            "%61", "%c0", "%ae", "%e0", "%80", ";", "\\", ":", "%3a", "~", "%7E", "+", "%2b", "|",
            "%7c", "{", "-", "_", "%c3%a9", "%20", "%00", "well-known", "?", "0123456789abcdef",
        ]
        var accepted = 0
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...9, using: &random)
            let target =
                "/" + (0..<count).map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            let outcome = once(target)
            guard case .message(let request) = outcome else { continue }
            accepted += 1
            #expect(HeadInvariants.forbiddenFeature(ofPath: request.path) == nil, "\(target)")
            guard case .message(let again) = once(text(request.path)) else {
                Issue.record("\(target) became \(text(request.path)), which is refused")
                continue
            }
            #expect(again.path == request.path, "\(target)")
            let sent = decoded(bytes(target).prefix { $0 != 0x3F } + [])
            if text(sent).split(separator: "/").contains(where: { $0 == "." || $0 == ".." }) {
                continue
            }
            let slashes = sent.prefix { $0 == 0x2F }.count
            #expect(decoded(request.path) == Array(sent.dropFirst(slashes - 1)))
        }
        #expect(accepted > 2_000)
    }

    private func once(_ target: String) -> MessageOutcome<RequestCopy> {
        let input = bytes(head("GET \(target) HTTP/1.1"))
        return outcomeOfRequest(input, limits: HeadLimits(), arrivals: [input.count])
    }

    /// What a backend that decodes once makes of a path: normalisation must not change it.
    private func decoded(_ path: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var index = 0
        while index < path.count {
            let digits = text(Array(path[index...].dropFirst().prefix(2)))
            if path[index] == 0x25, let byte = UInt8(digits, radix: 16) {
                result.append(byte)
                index += 3
            } else {
                result.append(path[index])
                index += 1
            }
        }
        return result
    }
}
