import TestKit
import Testing

@testable import portcullis

@Suite("Rate limits in explain and check")
struct ExplainLimitTests {
    private func file(_ limit: String, server: String = "") -> [String: String] {
        ["proxy.conf": OneRouteFile.text(server: server, route: limit)]
    }

    private func explain(_ files: [String: String]) -> Transcript {
        Transcript(["explain", "-c", "proxy.conf", "GET", "http://a.test/x"], files: files)
    }

    @Test("explain says which limit there is, and that it does not know what was used of it")
    func enforced() {
        let run = explain(file("rate_limit = { requests = 100, per = \"1m\", burst = 200 }"))
        #expect(run.exitCode == .done)
        #expect(
            run.text.contains(
                "rate_limit        100 per 1m (burst 200) by client_network; IPv4 /32, IPv6 /64; "
                    + "100000 clients are told apart"), "\(run.text)")
        #expect(
            run.text.contains(
                "verifications     500 bad tokens a second (burst 5000) of each network, "
                    + "IPv4 /32, IPv6 /48"), "\(run.text)")
        #expect(run.text.contains("beyond it: 429 rate_limited"))
        #expect(
            run.output.last?.hasSuffix(", provided the rate limit has room for it") == true,
            "\(run.text)")
    }

    @Test("explain: a monitored limit changes nothing, and none says nothing")
    func monitored() {
        let limit = "rate_limit = { requests = 1, per = \"1s\", mode = \"monitor\", key = \"app\" }"
        let run = explain(file(limit, server: "verifications = { per_second = 0 }"))
        #expect(run.text.contains("rate_limit        1 per 1s by app, monitored;"))
        #expect(run.text.contains("verifications     no limit"))
        #expect(!run.text.contains("provided"))
        let bare = explain(file("app_check = \"off\""))
        #expect(!bare.text.contains("rate_limit") && !bare.text.contains("verifications"))
    }

    @Test("check shows every limit, and what it may take")
    func check() {
        let limit = "rate_limit = { requests = 9, per = \"1h\", key = \"header:X-Key\" }"
        let run = Transcript(["check", "-c", "proxy.conf"], files: file(limit))
        #expect(run.exitCode == .done)
        let lines = run.output.joined(separator: "\n").split(separator: "\n")
        #expect(
            lines.contains {
                $0.contains("route all") && $0.contains("9 per 1h by header:x-key")
                    && $0.contains("100000") && $0.contains("4128 KiB")
            }, "\(run.text)")
        #expect(lines.contains { $0.contains("verifications") && $0.contains("500 bad tokens") })
    }
}
