import Testing

@testable import Configuration

@Suite("Secrets in configurations")
struct SecretTests {
    static let secret = "AIzaSyTopSecret0123456789"

    /// The secret, where people put it, together with every way of getting the line wrong that came
    /// to mind.
    static let texts: [String] = [
        "[project.p]\njwks_headers = { X-Goog-Api-Key = \"\(secret)\" }",
        "[project.p]\njwks_headers = { X-Goog-Api-Key = \"\(secret)\"",
        "[project.p]\njwks_headers = { X-Goog-Api-Key = \"\(secret) }",
        "[project.p]\njwks_headers = { X-Goog-Api-Key = \(secret) }",
        "[project.p]\njwks_headers = { X-Goog-Api-Key \"\(secret)\" }",
        "[project.p]\njwks_headers { X-Goog-Api-Key = \"\(secret)\" }",
        "[project.p]\njwks_headers = \"\(secret)\"",
        "[project.p]\njwks_headers = [\"X-Goog-Api-Key: \(secret)\"]",
        "[project.p]\njwks_headers = [\n\"X-Goog-Api-Key: \(secret)\"\n7 8]",
        "[project.p]\njwks_headers = { X-Goog-Api-Key = { file = \"\(secret)\" } }",
        "[project.p]\njwks_headers = { X-Goog-Api-Key = { env = \"\(secret)\" } }",
        "[project.p]\njwks_headers = { X-Goog-Api-Key = { value = \"\(secret)\" } }",
        "[project.p]\njwks_headers = { X-Goog-Api-Key = \"\(secret)\\n\" }",
        "[project.p]\njwks_headers = { X-Goog-Api-Key = \"\(secret)\\q\" }",
        "[project.p]\njwks_headers = { X-Goog-Api-Key = [\"\(secret)\"] }",
        "[project.p]\njwks_header = { X-Goog-Api-Key = \"\(secret)\" }",
        "[project.p]\nheaders = { X-Goog-Api-Key = \"\(secret)\" }",
        "[project.p]\njwks_headers.X-Goog-Api-Key = \"\(secret)\\x\"",
        "[project.p.jwks_headers]\nX-Goog-Api-Key = \"\(secret)",
        "[project.p.jwks_headers]\nX-Goog-Api-Key \"\(secret)\"",
        "[project.p.jwks_headers]\nX-Goog-Api-Key = \"\"\"\n\(secret)\n\"\"\" x",
        "[project.p.jwks_headers] X-Goog-Api-Key = \"\(secret)\"",
        "[project.p.headers]\nX-Goog-Api-Key = \"\(secret)\"",
        "project.p.jwks_headers.X-Goog-Api-Key = \"\(secret)\\x\"",
        "project.p = { jwks_headers = { X-Goog-Api-Key = \"\(secret)\" } }",
        "project = { p = { jwks_headers = { X-Goog-Api-Key = \"\(secret)\\x\" } } }",
        "jwks_headers = { X-Goog-Api-Key = \"\(secret)\" }",
        "[project.p]\njwks = \"http://example.com/jwks?key=\(secret)\"",
        "[project.p]\njwks = \"https://user:\(secret)@example.com/jwks\"",
        "[project.p]\njwks = \"https://example.com/jwks?key=\(secret)",
        "[project.p]\negress_proxy = \"http://user:\(secret)@proxy:3128\"",
        "[project.p]\negress_proxy = \"user:\(secret)@proxy:3128\"",
        "[admin]\nlisten = \"127.0.0.1:9090\"\ntoken = \"\(secret)\"",
        "[admin]\nlisten = \"127.0.0.1:9090\"\ntoken \"\(secret)\"",
        "[replay]\nredis = \"rediss://user:\(secret)@cache:6379/0\"",
        "[replay]\nredis = rediss://user:\(secret)@cache:6379/0",
        "[replay]\nredis = \"redis://:\(secret)\"",
        "[replay]\nredis = \"redis://\(secret)_!\"",
        "[replay]\nredis = \"redis://:\(secret)#@cache\"",
        "[replay]\nredis = \"redis://:\(secret)/@cache\"",
        "[replay]\nredis = \"redis://:\(secret)@@cache\"",
        "[replay]\nredis = \"redis://:\(secret)%@cache\"",
        "[replay]\nredis = \"redis://:\(secret)%00@cache\"",
        "[replay]\nredis = \"redis://\(secret)@cache\"",
        "[replay]\nredis = \":\(secret)@cache:6379\"",
        "[replay]\nredis = \"\(secret)://\"",
        "[replay]\nredis = \"\(secret)\"",
        "[replay]\nredis = { password = \"\(secret)\" }",
        "[replay]\nstore = \"redis\"\nredis = \"redis+unix://:\(secret)@run/redis.sock\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis+cluster://:\(secret)@a,b/1\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis+sentinel://:\(secret)@a,b\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://:\(secret)@cache:70000\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://:\(secret)\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://\(secret)_!\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://:\(secret)#@cache\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://:\(secret)/@cache\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://:\(secret)@@cache\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://:\(secret)%@cache\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://\(secret)@cache\"",
        "[replay]\nstore = \"redis\"\nredis = \":\(secret)@cache:6379\"",
        "[replay]\nstore = \"redis\"\nredis = \"\(secret)://\"",
        "[replay]\nstore = \"redis\"\nredis = \"\(secret)\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://a\"\nredis_password = \"\(secret)\\n\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://a\"\nredis_password = [\"\(secret)\"]",
        "[replay]\nstore = \"redis\"\nredis = \"redis://a\"\nredis_password = { env = \"\(secret)\" }",
        "[replay]\nstore = \"redis\"\nredis = \"redis://a\"\nredis_password \"\(secret)\"",
        "[replay]\nstore = \"redis\"\nredis = \"redis://a\"\nredis_pasword = \"\(secret)\"",
        "[replay]\nstore = \"redis://:\(secret)@cache\"",
        "[replay]\nstore = \"redis\"\nredis_ca = \"redis://:\(secret)@cache\"",
        "[replay]\ngoogle = { egress_proxy = \"http://u:\(secret)@proxy:1\" }",
        "[replay.redis]\nurl = \"\(secret)\"",
        "replay = { store = \"redis\", redis = \"redis://:\(secret)@cache\" }",
        "redis = \"redis://:\(secret)@cache\"",
    ]

    @Test("O5: never show in a diagnostic, whatever else is wrong with the line", arguments: texts)
    func neverShow(text: String) {
        let (configuration, diagnostics) = Configuration.load(
            text: text + "\n", fileName: "proxy.conf", surroundings: .empty)
        #expect(configuration == nil)
        for diagnostic in diagnostics {
            #expect(!diagnostic.description.contains("TopSecret"), "\(diagnostic)")
        }
    }

    @Test("O5: a line keeps its columns when its letters are masked")
    func columns() {
        let source = MaskedSource("[project.p]\njwks_headers = { A = \"é1\", B = 'x=y' }\n")
        #expect(source.line(2) == "jwks_headers = { * = \"**\", * = '*=*' }")
        #expect(source.isMasked(2))
        #expect(source.line(1) == "[project.p]")
    }
}
