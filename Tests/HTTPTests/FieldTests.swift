import HTTP
import TestKit
import Testing

@Suite("Fields")
struct FieldTests {
    @Test("H1: two token lines stay visible, so that they can be refused")
    func keepsDuplicateTokens() throws {
        let input = bytes(
            head("GET / HTTP/1.1", "X-Firebase-AppCheck: one", "x-firebase-appcheck: two, three"))
        var parser = RequestParser(limits: HeadLimits())
        var request = RequestHead()
        let isComplete = try parser.parse(input.span, into: &request)
        #expect(isComplete)
        #expect(request.fields.count(of: .appCheckToken) == 2)
        #expect(request.fields.first(.appCheckToken)?.value.count == 3)
        #expect(request.fields.count(of: .cookie) == 0)
        #expect(request.fields.first(.cookie) == nil)
    }

    @Test(
        "H2: the token's name is read in any case, and only with its dashes",
        arguments: [
            Case("X-Firebase-AppCheck", .appCheckToken),
            Case("x-firebase-appcheck", .appCheckToken),
            Case("X-FIREBASE-APPCHECK", .appCheckToken),
            Case("X_Firebase_AppCheck", .reserved), Case("X-Firebase_AppCheck", .reserved),
            Case("x_firebase-appcheck", .reserved), Case("X.Firebase.AppCheck", .reserved),
            Case("X-Firebase-AppCheck2", .other), Case("X-Firebase-AppChec", .other),
            Case("XFirebaseAppCheck", .other),
        ] as [Case<KnownField>])
    func readsTokenName(_ row: Case<KnownField>) throws {
        let request = try verdict(head("GET / HTTP/1.1", "\(row.input): t")).accepted()
        #expect(request.line(row.input)?.known == row.expected)
    }

    @Test(
        "H3: every spelling of a field that only the proxy sets is reserved",
        arguments: [
            "X-AppCheck-Verdict", "x-appcheck-reason", "X-APPCHECK-APP", "X-AppCheck-App-Id",
            "X-AppCheck-Action", "X_AppCheck_Verdict", "X-AppCheck_Verdict", "x_appcheck-app_id",
            "X.AppCheck.Action", "X-AppCheck-Anything", "x_appcheck_new",
            "X-AppCheck-A-Name-That-Is-Longer-Than-Any-Known-One",
            "X_AppCheck_A_Name_That_Is_Longer_Than_Any_Known_One",
        ])
    func reservesOwnFields(_ name: String) throws {
        let request = try verdict(head("GET / HTTP/1.1", "\(name): verified")).accepted()
        #expect(request.line(name)?.known == .reserved)
    }

    @Test(
        "H3: a look-alike of any known field is reserved in requests",
        arguments: [
            "Content_Length", "Transfer_Encoding", "Content.Length", "User_Agent", "X_Real_IP",
            "X_Forwarded_For", "X-Forwarded_For", "X_Original_URL", "X_Request_Id", "content~type",
            "Access_Control-Request-Headers",
        ])
    func reservesLookalikes(_ name: String) throws {
        let request = try verdict(head("GET / HTTP/1.1", "\(name): 5")).accepted()
        #expect(request.line(name)?.known == .reserved)
        #expect(request.framing == .none)
    }

    @Test("Names with marks that resemble nothing pass")
    func passesUnusualNames() throws {
        let request = try verdict(
            head("GET / HTTP/1.1", "my_field: 1", "X!#$%&'*+.^_`|~9: 2", "__: 3")
        ).accepted()
        #expect(request.fields.dropFirst().allSatisfy { $0.known == .other && !$0.isHopByHop })
    }

    @Test(
        "H6: fields that speak for a proxy in front are told apart",
        arguments: [
            Case("X-Forwarded-For", .forwardedFor), Case("x-forwarded-proto", .forwardedProto),
            Case("X-Forwarded-Host", .forwardedHost), Case("Forwarded", .forwarded),
            Case("X-Forwarded-Prefix", .forwardedOther), Case("X-Forwarded-Uri", .forwardedOther),
            Case("X-Forwarded-Method", .forwardedOther), Case("X-Forwarded", .forwardedOther),
            Case("X-Forwarded-Port", .forwardedOther), Case("X-Real-IP", .forwardedOther),
            Case("X-Original-URL", .forwardedOther), Case("X-Rewrite-URL", .forwardedOther),
            Case("X-Client-IP", .forwardedOther), Case("X-Cluster-Client-IP", .forwardedOther),
            Case("True-Client-IP", .forwardedOther), Case("CF-Connecting-IP", .forwardedOther),
            Case("CF-Connecting-IPv6", .forwardedOther), Case("Fly-Client-IP", .forwardedOther),
            Case("Fastly-Client-IP", .forwardedOther), Case("X-Azure-ClientIP", .forwardedOther),
            Case("X-Forward", .other), Case("CF-Connecting-IQ", .other),
        ] as [Case<KnownField>])
    func knowsForwarding(_ row: Case<KnownField>) throws {
        let request = try verdict(head("GET / HTTP/1.1", "\(row.input): a")).accepted()
        #expect(request.line(row.input)?.known == row.expected)
    }

    @Test(
        "Knows its fields in any letter case, and nothing that only resembles them",
        arguments: [
            Case("Trailer", .trailer), Case("Keep-Alive", .keepAlive),
            Case("Proxy-Connection", .proxyConnection), Case("Via", .via),
            Case("Proxy-Authenticate", .proxyAuthenticate), Case("TE", .te),
            Case("Proxy-Authorization", .proxyAuthorization), Case("X-Request-Id", .requestID),
            Case("traceparent", .traceparent), Case("tracestate", .tracestate),
            Case("User-Agent", .userAgent), Case("Origin", .origin), Case("Date", .date),
            Case("Access-Control-Request-Method", .accessControlRequestMethod),
            Case("Access-Control-Request-Headers", .accessControlRequestHeaders),
            Case("Content-Type", .contentType), Case("Server", .server), Case("Cookie", .cookie),
            Case("Authorization", .authorization), Case("HTTP2-Settings", .http2Settings),
            Case("Upgrade", .upgrade),
        ] as [Case<KnownField>])
    func knowsFields(_ row: Case<KnownField>) throws {
        for name in [row.input, row.input.lowercased(), row.input.uppercased()] {
            let request = try verdict(head("GET / HTTP/1.1", "\(name): a")).accepted()
            #expect(request.line(name)?.known == row.expected)
        }
        for index in row.input.indices {
            var name = row.input
            name.replaceSubrange(index...index, with: row.input[index] == "z" ? "y" : "z")
            let request = try verdict(head("GET / HTTP/1.1", "\(name): a")).accepted()
            #expect(request.line(name)?.known == .other, "\(name)")
        }
    }

    @Test(
        "H8: refuses broken field lines",
        arguments: [
            Case("A: b\r\n c", .obsoleteFold), Case("A: b\r\n\tc", .obsoleteFold),
            Case("A : b", .fieldName), Case("A\t: b", .fieldName), Case(": b", .fieldName),
            Case("A", .fieldName), Case("A B: c", .fieldName), Case("A(: c", .fieldName),
            Case("Ä: c", .fieldName), Case("A\u{0}: c", .fieldName), Case("A\rB: c", .fieldName),
            Case("A: b\u{0}c", .fieldValue), Case("A: b\rc", .fieldValue),
            Case("A: b\r\rc", .fieldValue), Case("A: \u{1}", .fieldValue),
            Case("A: \u{7F}", .fieldValue), Case("A: \u{1B}[0m", .fieldValue),
            Case("A: b\nB: c", .bareLineFeed), Case("\n", .bareLineFeed),
            Case("A: b\r", .fieldValue),
        ] as [Case<MalformedMessage.Kind>])
    func refusesBrokenLines(_ row: Case<MalformedMessage.Kind>) {
        #expect(verdict(head("GET / HTTP/1.1", row.input)) == .malformed(row.expected))
        let long = "X-Long: \(String(repeating: "v", count: 60))\r\n\(row.input)"
        #expect(verdict(head("GET / HTTP/1.1", long)) == .malformed(row.expected))
    }

    @Test(
        "H8: finds one bad byte at any place in a value", arguments: [0, 7, 15, 16, 17, 31, 32, 63])
    func findsBadByteAnywhere(_ index: Int) {
        for byte: Character in ["\u{0}", "\u{1F}", "\u{7F}", "\r"] {
            var value = Array(repeating: Character("v"), count: 64)
            value[index] = byte
            let request = head("GET / HTTP/1.1", "A: \(String(value))", "B: c")
            #expect(verdict(request) == .malformed(.fieldValue))
        }
    }

    @Test("Values lose the blanks around them and keep everything else")
    func trimsValues() throws {
        let request = try verdict(
            head("GET / HTTP/1.1", "A: \t b\t c \t", "B:", "C:  ", "D:\u{E9}\u{FF}:;,\"")
        ).accepted()
        #expect(request.line("A")?.value == bytes("b\t c"))
        #expect(request.line("B")?.value == [])
        #expect(request.line("C")?.value == [])
        #expect(request.line("D")?.value == bytes("\u{E9}\u{FF}:;,\""))
    }

    @Test(
        "C1: only OPTIONS with Origin and Access-Control-Request-Method, without body, is a preflight",
        arguments: [
            Case("OPTIONS|Origin: https://a|Access-Control-Request-Method: PUT", true),
            Case("OPTIONS|origin: null|ACCESS-CONTROL-REQUEST-METHOD: PUT", true),
            Case("OPTIONS|Origin: https://a", false),
            Case("OPTIONS|Access-Control-Request-Method: PUT", false), Case("OPTIONS", false),
            Case("OPTIONSX|Origin: https://a|Access-Control-Request-Method: PUT", false),
            Case("GET|Origin: https://a|Access-Control-Request-Method: PUT", false),
            Case("OPTIONS|Origin: a|Access-Control-Request-Method: PUT|Content-Length: 0", true),
            Case("OPTIONS|Origin: a|Access-Control-Request-Method: PUT|Content-Length: 1", false),
        ])
    func preflight(_ row: Case<Bool>) throws {
        let parts = row.input.split(separator: "|").map(String.init)
        let fields = (["Host: a"] + parts.dropFirst()).joined(separator: "\r\n")
        let request = "\(parts[0]) / HTTP/1.1\r\n\(fields)\r\n\r\n"
        #expect(try verdict(request).accepted().isPreflight == row.expected)
    }
}
