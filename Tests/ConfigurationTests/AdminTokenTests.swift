import Testing

@testable import Configuration

@Suite("Admin token")
struct AdminTokenTests {
    @Test(
        "is one word of 16 to 512 visible characters",
        arguments: [
            ("0123456789abcdef", true), (String(repeating: "x", count: 512), true),
            ("!~0123456789abcdef", true), ("0123456789abcde", false), ("", false),
            (String(repeating: "x", count: 513), false), ("0123456789 abcdef", false),
            ("0123456789abcdef\n", false), ("0123456789abcdeé", false),
            ("0123456789abcdef\u{7F}", false),
        ])
    func words(_ text: String, _ isToken: Bool) {
        #expect((AdminToken(text) != nil) == isToken)
    }

    @Test("matches itself alone, and shows itself to nobody")
    func matching() throws {
        let text = "0123456789abcdef"
        let token = try #require(AdminToken(text))
        #expect(token.matches(Array(text.utf8)))
        #expect(!token.matches(Array("0123456789abcdeg".utf8)))
        #expect(!token.matches(Array((text + "\n").utf8)))
        #expect(!token.matches([]))
        let admin = Admin(listen: .unix(path: "/x"), tokenFile: "f", token: token)
        for shown in ["\(token)", "\(admin)", String(reflecting: admin)] {
            #expect(!shown.contains(text))
        }
        #expect(token == AdminToken(text) && token != AdminToken("0123456789abcdeg"))
    }
}
