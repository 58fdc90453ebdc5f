import Policy
import Testing

@Suite("CORS")
struct CORSTests {
    @Test(
        "an origin is granted when it is listed byte for byte",
        arguments: [
            ("https://app.example.com", CORS.Grant.named), ("https://app.example.com/", .refused),
            ("https://app.example.com.evil.example", .refused),
            ("http://app.example.com", .refused),
            ("https://APP.example.com", .refused), ("https://app.example.com:443", .refused),
            ("", .refused),
            ("null", .refused), ("*", .refused), ("https://app.example.co", .refused),
        ])
    func listed(origin: String, grant: CORS.Grant) {
        #expect(
            CORS(allowOrigins: ["https://a.example", "https://app.example.com"]).grant(origin)
                == grant)
    }

    @Test("a star grants everyone; with credentials it names the origin, but never null")
    func star() {
        var cors = CORS(allowOrigins: ["*"])
        #expect(cors.grant("https://x.example") == .anyone)
        #expect(cors.grant("null") == .anyone)
        #expect(cors.grant("https://x\r\nSet-Cookie: a") == .refused)
        #expect(cors.grant("https://" + String(repeating: "x", count: 300)) == .refused)
        cors.allowCredentials = true
        #expect(cors.grant("https://x.example") == .named)
        #expect(cors.grant("null") == .refused)
        cors.allowOrigins = ["*", "null"]
        #expect(cors.grant("null") == .named)
    }

    @Test("C2: a rejection names the origin, varies by it, and exposes what browser code must read")
    func rejection() {
        #expect(
            fields(CORS(allowOrigins: ["https://a.example"]), .rejection, "https://a.example") == [
                "Vary: Origin", "Access-Control-Allow-Origin: https://a.example",
                "Access-Control-Expose-Headers: WWW-Authenticate, X-Request-Id, Retry-After, "
                    + "RateLimit, RateLimit-Policy, Grpc-Status, Grpc-Message",
            ])
    }

    @Test(
        "C2: a refused origin learns nothing, and the answer still varies",
        arguments: ["https://b.example", ""])
    func refused(origin: String) {
        for answer in [CORSFields.Answer.rejection, .preflight] {
            #expect(
                fields(CORS(allowOrigins: ["https://a.example"]), answer, origin) == [
                    "Vary: Origin"
                ])
        }
    }

    @Test("C2: with credentials the star itself is never sent")
    func credentials() {
        var cors = CORS(allowOrigins: ["*"])
        #expect(
            fields(cors, .rejection, "https://x.example")[1] == "Access-Control-Allow-Origin: *")
        cors.allowCredentials = true
        let fields = fields(cors, .rejection, "https://x.example")
        #expect(
            fields[1...2] == [
                "Access-Control-Allow-Origin: https://x.example",
                "Access-Control-Allow-Credentials: true",
            ])
    }

    @Test("C1: an answered preflight always allows X-Firebase-AppCheck")
    func answeredPreflight() {
        var cors = CORS(allowOrigins: ["https://a.example"])
        #expect(
            fields(cors, .preflight, "https://a.example") == [
                "Vary: Origin", "Access-Control-Allow-Origin: https://a.example",
                "Access-Control-Allow-Methods: POST, PUT",
                "Access-Control-Allow-Headers: Authorization, Content-Type, X-Firebase-AppCheck",
                "Access-Control-Max-Age: 600",
            ])
        cors.allowHeaders = ["x-firebase-appcheck", "X-Trace"]
        cors.allowMethods = ["DELETE"]
        cors.maxAge = 5
        cors.allowCredentials = true
        #expect(
            fields(cors, .preflight, "https://a.example")[2...] == [
                "Access-Control-Allow-Credentials: true", "Access-Control-Allow-Methods: DELETE",
                "Access-Control-Allow-Headers: X-Trace, X-Firebase-AppCheck",
                "Access-Control-Max-Age: 5",
            ])
    }

    @Test("a route table has the fields of each route that has cors")
    func table() throws {
        var with = route("with", "/a")
        with.cors = CORS(allowOrigins: ["*"])
        let table = try RouteTable([with, route("without", "/b")])
        #expect(table.cors[0] != nil)
        #expect(table.cors[1] == nil)
    }

    private func fields(_ cors: CORS, _ answer: CORSFields.Answer, _ origin: String) -> [String] {
        let fields = CORSFields(route("r", "/*", methods: ["POST", "PUT"]), cors)
        var written: [String] = []
        fields.write(answer, origin: Array(origin.utf8).span) { name, value in
            let value = String(decoding: value.indices.map { value[$0] }, as: UTF8.self)
            written.append("\(name): \(value)")
        }
        return written
    }
}

extension CORS {
    fileprivate func grant(_ origin: String) -> Grant {
        allowedOrigin(for: Array(origin.utf8).span)
    }
}
