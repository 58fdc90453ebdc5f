import HTTP
import Testing

@Suite("URL of the client")
struct HTTPURLTests {
    @Test(
        "takes a URL apart",
        arguments: [
            ("https://keys.example.com/v1/jwks", true, "keys.example.com", 443, "/v1/jwks"),
            ("HTTPS://Keys.Example.COM", true, "keys.example.com", 443, "/"),
            ("http://127.0.0.1:8080/a?b=c", false, "127.0.0.1", 8080, "/a?b=c"),
            ("http://[::1]:81?q", false, "::1", 81, "/?q"),
            ("https://[::1]/", true, "::1", 443, "/"),
            ("https://h:65535/x", true, "h", 65535, "/x"),
        ] as [(String, Bool, String, UInt16, String)])
    func parts(text: String, isSecure: Bool, host: String, port: UInt16, target: String) throws {
        let url = try HTTPURL(text)
        #expect(url.isSecure == isSecure)
        #expect(url.host == host)
        #expect(url.port == port)
        #expect(url.target == target)
    }

    @Test(
        "says what is wrong with a URL",
        arguments: [
            ("keys.example.com", "does not start with https:// or http://"),
            ("ftp://keys.example.com/", "does not start with https:// or http://"),
            ("https://", "has no valid host name"), ("https:///x", "has no valid host name"),
            ("https://user:pw@h/", "carries a user name or password"),
            ("https://h/#x", "has a fragment"),
            ("https://h:/", "has a port that is not a number from 1 to 65535"),
            ("https://h:0/", "has a port that is not a number from 1 to 65535"),
            ("https://h:65536/", "has a port that is not a number from 1 to 65535"),
            ("https://h:+1/", "has a port that is not a number from 1 to 65535"),
            ("https://a:b:1/", "has no valid host name"), ("https://ä/", "outside ASCII"),
            ("https://h/a b", "has a space"), ("https://h/\r\nX:", "control character"),
            ("https://[::1/", "has an unclosed bracket"),
            ("https://[host]/", "brackets around something that is no IPv6 address"),
            ("https://[127.0.0.1]/", "brackets around something that is no IPv6 address"),
            ("https://[::1]x/", "has an unclosed bracket"),
        ])
    func mistakes(text: String, words: String) {
        let error = #expect(throws: HTTPURLError.self) { _ = try HTTPURL(text) }
        #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
    }
}

@Suite("Freshness of an answer")
struct FreshnessTests {
    @Test(
        "is what Cache-Control and Age say",
        arguments: [
            (nil, nil, nil), ("public", nil, nil), ("max-age=300", nil, 300),
            ("public, MAX-AGE=\"300\" , must-revalidate", "100", 200), ("max-age=10", "500", 0),
            ("max-age=0", nil, 0), ("max-age=-5", nil, 0), ("max-age", nil, 0),
            ("max-age=x", nil, 0),
            ("no-store", nil, 0), ("no-cache, max-age=60", nil, 0),
            ("max-age=99999999999999999999999", nil, 1 << 31), ("max-age=60, max-age=5", nil, 60),
            ("max-age=60", "soon", 60), ("s-maxage=60", nil, nil),
        ] as [(String?, String?, Int64?)])
    func table(control: String?, age: String?, seconds: Int64?) {
        var fields: [(name: String, value: String)] = []
        if let control { fields.append(("cache-control", control)) }
        if let age { fields.append(("age", age)) }
        let response = HTTPResponse(status: 200, fields: fields, body: [])
        #expect(response.freshness == seconds.map { .seconds($0) })
    }
}
