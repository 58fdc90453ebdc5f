import Policy
import Testing

@Suite("Fingerprints of clients without a token")
struct ClientFingerprintTests {
    @Test(
        "M6: what looks like one of our apps is an outdated client, anything else of unknown origin"
    )
    func split() {
        let fingerprints: [[ClientFingerprint]] = [
            [.fieldPresent("x-firebase-client"), .userAgent(pattern: "Shop/1.*")],
            [.userAgent(pattern: "*Bank/*")],
        ]
        func reason(_ route: Route, _ fields: Set<String>, _ userAgent: String) -> MissingReason {
            route.missingReason(
                fingerprints, hasField: { fields.contains($0) },
                userAgent: Array(userAgent.utf8).span)
        }
        let all = route("all", "/*")
        #expect(reason(all, ["x-firebase-client"], "") == .outdatedClient)
        #expect(reason(all, [], "Shop/1.9 (iOS)") == .outdatedClient)
        #expect(reason(all, [], "Old Bank/3") == .outdatedClient)
        #expect(reason(all, [], "Shop/2.0") == .unknownOrigin)
        #expect(reason(all, ["user-agent"], "curl/8") == .unknownOrigin)
        #expect(reason(all, [], "") == .unknownOrigin)
        var bank = route("bank", "/*")
        bank.projects = [1]
        #expect(reason(bank, ["x-firebase-client"], "Shop/1.9") == .unknownOrigin)
        #expect(reason(bank, [], "Bank/3") == .outdatedClient)
        bank.projects = [7]
        #expect(reason(bank, ["x-firebase-client"], "Bank/3") == .unknownOrigin)
    }

    @Test(
        "a pattern matches the whole User-Agent, with * for any run of bytes",
        arguments: [
            ("Shop/1.*", "Shop/1.", true), ("Shop/1.*", "Shop/1", false),
            ("Shop/1.*", "shop/1.2", false),
            ("Shop", "Shop", true), ("Shop", "Shop/1", false), ("Shop", "My Shop", false),
            ("*", "x", true),
            ("*", "", false), ("", "", false), ("", "x", false), ("*Shop*", "My Shop 1", true),
            ("a*b*c", "a-b-b-c", true), ("a*b*c", "a-b-b-c-", false), ("a*b*c", "acb", false),
            ("**a**", "xax", true), ("*ab", "aab", true), ("*ab", "aba", false),
            ("a*a", "a", false),
            ("a*a", "aa", true), ("?", "x", false), ("*abc", "ababc", true), ("a**", "a", true),
        ])
    func patterns(pattern: String, userAgent: String, isMatch: Bool) {
        let fingerprint = ClientFingerprint.userAgent(pattern: pattern)
        #expect(fingerprint.matches(userAgent) == isMatch)
    }

    @Test("no User-Agent makes a pattern cost more than its length times the pattern's")
    func hostile() {
        let pattern = String(repeating: "*a", count: 200) + "*b"
        let longest = ClientFingerprint.longestUserAgent
        let fingerprint = ClientFingerprint.userAgent(pattern: pattern)
        // Backtracking over every star would take longer than the universe has.
        #expect(!fingerprint.matches(String(repeating: "a", count: longest)))
        #expect(fingerprint.matches(String(repeating: "a", count: longest - 1) + "b"))
        #expect(!fingerprint.matches(String(repeating: "a", count: longest) + "b"))
    }
}

extension ClientFingerprint {
    fileprivate func matches(_ userAgent: String) -> Bool {
        matches(hasField: { _ in false }, userAgent: Array(userAgent.utf8).span)
    }
}
