import Attestation
import Configuration
import Reactor
import TestKit
import Testing

@testable import portcullis

@Suite("portcullis explain")
struct ExplainTests {
    private static let configuration = """
        [[listener]]
        listen = "127.0.0.1:8080"
        [project.production]
        number = "123"
        id = "pid"
        jwks = "keys.json"
        apps = { ios = "1:123:ios:abc", android = "1:123:android:def" }
        client_fingerprints = { user_agents = ["MyApp/*"] }
        [upstream.api]
        servers = ["127.0.0.1:9000"]
        [[route]]
        name = "pay"
        hosts = ["api.example.com"]
        path = "/v1/pay"
        methods = ["POST"]
        upstream = "api"
        apps = ["ios"]
        app_check = "enforce"
        cors = { allow_origins = ["https://app.example.com"], answer_preflights = true }
        [[route]]
        name = "quarter"
        path = "/quarter"
        upstream = "api"
        app_check = "enforce"
        enforce_percent = 25
        [[route]]
        name = "by-app"
        path = "/by-app"
        upstream = "api"
        app_check = "enforce"
        enforce_percent = 99
        sticky_by = "header:X-Install"
        [[route]]
        name = "open"
        path = "/open"
        upstream = "api"
        app_check = "off"
        [[route]]
        name = "watched"
        path = "/watched/*"
        upstream = "api"
        """

    private static let files = [
        "proxy.conf": configuration, "keys.json": TestIssuer.keySetJSON(of: [.standard]),
    ]

    private func explain(
        _ arguments: String..., input: String? = nil, files: [String: String] = files
    ) -> Transcript {
        Transcript(["explain", "-c", "proxy.conf"] + arguments, files: files, input: input)
    }

    private let pay = "https://api.example.com/v1/pay"

    @Test("a good token is forwarded")
    func good() {
        let run = explain("POST", pay, "--token", TestIssuer.standard.token())
        #expect(run.exitCode == .done)
        #expect(run.text.contains("chosen      pay (POST api.example.com/v1/pay)"))
        #expect(run.text.contains("signature   ok"))
        #expect(run.text.contains("app         ok       \"1:123:ios:abc\" may call this route"))
        #expect(run.text.contains("verdict     verified"))
        #expect(run.text.contains("action      allow"))
        #expect(run.output.last?.hasSuffix("is forwarded to api") == true)
    }

    @Test(
        "H6: forwarding fields do not choose the client, and explain says so",
        arguments: ["X-Forwarded-For: 192.0.2.1", "forwarded: for=192.0.2.1"])
    func forwardingFields(line: String) {
        let run = explain("GET", "http://api.example.com/quarter", "-H", line)
        #expect(run.text.contains("client_ip 127.0.0.1 is at"))
        #expect(run.text.contains("caution     who asks is --client-ip"))
        #expect(!explain("GET", "http://api.example.com/quarter").text.contains("--client-ip"))
    }

    @Test("the token may come in its field, or from the standard input")
    func tokenSources() {
        let token = TestIssuer.standard.token()
        #expect(explain("POST", pay, "-H", "x-firebase-appcheck: \(token)").exitCode == .done)
        #expect(explain("POST", pay, "--token", "-", input: token + "\n").exitCode == .done)
        #expect(explain("POST", pay, "--token", "-", input: nil).exitCode == .wrong)
    }

    @Test(
        "says which step a bad token fails, and what the client gets",
        arguments: [
            (
                ["iss": "\"https://firebaseappcheck.googleapis.com/9\""], "issuer",
                "invalid, reason issuer", "401 token_invalid"
            ),
            (
                ["aud": "[\"projects/9\"]"], "audience", "invalid, reason audience",
                "401 token_invalid"
            ),
            (
                ["exp": "\(TestIssuer.now - 3600)", "iat": "\(TestIssuer.now - 7200)"], "expiry",
                "invalid, reason expired", "401 token_expired"
            ),
            (["sub": "\"1:123:android:def\""], "app", "app_not_allowed", "403 app_not_allowed"),
            (["sub": "\"1:123:web:unknown\""], "app", "app_not_allowed", "403 app_not_allowed"),
        ])
    func bad(claims: [String: String], step: String, verdict: String, answer: String) {
        let run = explain("POST", pay, "--token", TestIssuer.standard.token(claims: claims))
        #expect(run.exitCode == .wrong)
        let steps = run.output.filter { $0.contains("FAILS") }
        #expect(steps.contains { $0.hasPrefix("  \(step) ") }, "\(steps)")
        #expect(run.text.contains("verdict     \(verdict)"))
        #expect(run.output.last?.hasSuffix("is refused: \(answer)") == true)
    }

    @Test("a forged signature and an unknown key fail")
    func forged() {
        let unknown = explain("POST", pay, "--token", TestIssuer.other.token())
        #expect(unknown.text.contains("verdict     invalid, reason unknown_key"))
        var token = TestIssuer.standard.token()
        token = String(token.dropLast(8)) + "AAAAAAAA"
        let forged = explain("POST", pay, "--token", token)
        #expect(forged.text.contains("verdict     invalid, reason"))
        #expect(forged.exitCode == .wrong)
    }

    @Test(
        "no token: an older build, or nobody knows who",
        arguments: [
            ("MyApp/1.0", "outdated_client"), ("curl/8", "unknown_origin"),
        ])
    func missing(agent: String, reason: String) {
        let run = explain("POST", pay, "-H", "User-Agent: \(agent)")
        #expect(run.text.contains("verdict     missing, reason \(reason)"))
        #expect(run.output.last?.hasSuffix("is refused: 401 token_missing") == true)
    }

    @Test(
        "H1: two tokens are none",
        arguments: [
            (["-H", "X-Firebase-AppCheck: a", "-H", "X-Firebase-AppCheck: b"], "duplicate"),
            (["-H", "X-Firebase-AppCheck: a, b"], "malformed"),
        ])
    func duplicate(fields: [String], reason: String) {
        let run = Transcript(
            ["explain", "-c", "proxy.conf", "POST", pay] + fields, files: Self.files)
        #expect(run.exitCode == .wrong)
        #expect(run.text.contains("verdict     invalid, reason \(reason)"))
    }

    @Test("H5: a token in the URL is refused, and not shown")
    func inURL() {
        let token = TestIssuer.standard.token()
        let run = explain("POST", pay + "?t=\(token)", "--token", token)
        #expect(run.exitCode == .wrong)
        #expect(run.output.last?.hasSuffix("is refused: 400 token_in_url") == true)
        #expect(!run.text.contains(token))
    }

    @Test("O5: shows no part of a token that could be used")
    func secrets() {
        let token = TestIssuer.standard.token()
        let run = explain("POST", pay, "--token", token)
        #expect(!run.text.contains(token.suffix(40)))
    }

    @Test("the placeholder and a debug secret have their own words")
    func placeholders() {
        let placeholder = "eyJlcnJvciI6IlVOS05PV05fRVJST1IifQ=="
        #expect(
            explain("POST", pay, "--token", placeholder).text.contains(
                "verdict     attestation_failed"))
        let debug = explain("POST", pay, "--token", "a1b2c3d4-0000-4000-8000-a1b2c3d4e5f6")
        #expect(debug.text.contains("note        a debug secret"))
        #expect(!debug.text.contains("a1b2c3d4-0000"))
    }

    @Test("M2: the share says where the client is, and who is outside is forwarded")
    func share() {
        var inside = 0
        for number in 0..<100 {
            let run = explain("GET", "http://x/quarter", "--client-ip", "192.0.2.\(number)")
            let isInside = run.text.contains(", inside the enforced 25%")
            #expect(isInside || run.text.contains(", outside the enforced 25%"))
            #expect(run.exitCode == (isInside ? .wrong : .done))
            inside += isInside ? 1 : 0
        }
        #expect((10...40).contains(inside))
    }

    @Test("a client without the field that the share goes by is outside")
    func noKey() {
        let run = explain("GET", "http://x/by-app")
        #expect(run.exitCode == .done)
        #expect(run.text.contains("has no header:x-install, so it is outside the enforced 99%"))
        #expect(run.output.last?.contains("enforcement would refuse it with token_missing") == true)
    }

    @Test("C1: a preflight needs no token; plain OPTIONS does")
    func preflight() {
        let fields = [
            "-H", "Origin: https://app.example.com", "-H", "Access-Control-Request-Method: POST",
        ]
        let url = "https://api.example.com/v1/pay"
        let head = ["explain", "-c", "proxy.conf", "OPTIONS"]
        let files = Self.files.mapValues { $0.replacing("methods = [\"POST\"]\n", with: "") }
        let preflight = Transcript(head + [url] + fields, files: files)
        #expect(preflight.exitCode == .done)
        #expect(preflight.text.contains("verdict     exempt"))
        #expect(preflight.output.last?.hasSuffix("is answered here: a preflight") == true)
        #expect(Transcript(head + [url], files: files).exitCode == .wrong)
    }

    @Test("P6: no route is 404, and says what came near")
    func noRoute() {
        let run = explain("GET", pay)
        #expect(run.exitCode == .wrong)
        #expect(
            run.text.contains("not         pay (POST api.example.com/v1/pay): another method"))
        #expect(run.output.last?.contains("is refused: 404") == true)
        let host = explain("POST", "https://www.example.com/v1/pay")
        #expect(host.text.contains("): another host"))
        let path = explain("POST", "https://api.example.com/v1/pays")
        #expect(path.text.contains("): another path"))
    }

    @Test(
        "P2: what the parser refuses is refused here",
        arguments: [
            "https://api.example.com/v1/..;x/pay", "https://api.example.com/v1%2fpay",
            "https://user@api.example.com/v1/pay", "https://api.example.com/v1/%00",
        ])
    func malformed(url: String) {
        let run = explain("POST", url, "--token", TestIssuer.standard.token())
        #expect(run.exitCode == .wrong)
        #expect(run.output.last?.contains("is refused: 400, malformed in ") == true)
    }

    @Test("shows the normal form that routes are compared with")
    func normalForm() {
        let run = explain("POST", "https://API.example.com:443/v1/%70ay")
        #expect(run.text.contains("host        api.example.com"))
        #expect(run.text.contains("path        /v1/pay (written /v1/%70ay)"))
        #expect(run.text.contains("chosen      pay "))
    }

    @Test("a field cannot smuggle a second request in")
    func smuggling() {
        let run = explain("GET", "http://x/open", "-H", "A: b\r\n\r\nGET /v1/pay HTTP/1.1")
        #expect(run.exitCode == .wrong)
        #expect(run.output.last?.contains("is refused: 400") == true)
    }

    @Test("monitored and open routes forward, and say what enforcement would do")
    func monitored() {
        let watched = explain("GET", "http://x/watched/y")
        #expect(watched.exitCode == .done)
        #expect(watched.text.contains("action      would_reject"))
        let open = explain("GET", "http://x/open")
        #expect(open.exitCode == .done)
        #expect(open.text.contains("verdict     exempt"))
    }

    @Test("without keys the signature is not checked, and that is said")
    func withoutKeys() {
        let remote = Self.configuration.replacing("jwks = \"keys.json\"\n", with: "")
        let files = ["proxy.conf": remote]
        let good = explain("POST", pay, "--token", TestIssuer.other.token(), files: files)
        #expect(good.exitCode == .done)
        #expect(good.text.contains("signature   skipped  no keys"))
        #expect(good.text.contains("caution     the signature was not checked: its keys are at"))
        #expect(good.output.last?.hasSuffix("provided the signature holds") == true)
        let old = TestIssuer.other.token(claims: ["exp": "\(TestIssuer.now - 3600)"])
        let expired = explain("POST", pay, "--token", old, files: files)
        #expect(expired.exitCode == .wrong)
    }

    @Test("fetches keys only when asked to")
    func fetchedKeys() {
        struct Fetched: KeySetSource {
            func keySet(of project: ProjectSource) -> Result<KeySet, KeysNotLoaded> {
                .success(TestIssuer.standard.keySet)
            }
        }
        let remote = Self.configuration.replacing("jwks = \"keys.json\"\n", with: "")
        let arguments = [
            "explain", "-c", "proxy.conf", "POST", pay, "--token", TestIssuer.standard.token(),
        ]
        let local = Transcript(arguments, files: ["proxy.conf": remote], fetched: Fetched())
        #expect(local.text.contains("signature   skipped"))
        let fetched = Transcript(
            arguments + ["--fetch-keys"], files: ["proxy.conf": remote], fetched: Fetched())
        #expect(fetched.text.contains("signature   ok"))
    }

    @Test("fetches keys as the proxy does, and says why it cannot")
    func fetching() async throws {
        let json = TestIssuer.keySetJSON(of: [.standard])
        let server = try await ScriptedServer.start { request, _ in
            request.hasPrefix("GET /jwks ") ? .ok(json) : .init("HTTP/1.1 404 No\r\n\r\n")
        }
        let address = "\(server.address)"
        let arguments = [
            "explain", "-c", "proxy.conf", "POST", pay, "--fetch-keys", "--token",
            TestIssuer.standard.token(),
        ]
        for (path, isThere) in [("jwks", true), ("nothing", false)] {
            let configuration = Self.configuration.replacing(
                "\"keys.json\"", with: "\"http://\(address)/\(path)\"")
            // Fetching blocks its thread, which must be none of those that tasks share.
            let text = await withCheckedContinuation { continuation in
                _ = Thread.start(named: "explain") {
                    let run = Transcript(
                        arguments, files: ["proxy.conf": configuration],
                        fetched: FetchedKeySets())
                    continuation.resume(returning: run.text)
                }
            }
            #expect(text.contains("signature   ok") == isThere, "\(text)")
            #expect(text.contains("404") == !isThere, "\(text)")
        }
    }

    @Test("a broken configuration exits with 1 before anything is explained")
    func broken() {
        let run = explain("GET", "http://x/", files: ["proxy.conf": "[server]\n"])
        #expect(run.exitCode == .wrong)
        #expect(run.output == [])
    }
}
