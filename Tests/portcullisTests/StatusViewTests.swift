import FoundationEssentials
import Testing

@testable import Operations
@testable import portcullis

@Suite("portcullis status")
struct StatusViewTests {
    private static let report: StatusReport = {
        var report = StatusReport(
            process: .init(
                version: "1.2.3", pid: 7, startedAt: "2026-11-30T00:00:00Z",
                uptimeSeconds: 273_600, phase: "serving", ready: true, loops: 2),
            configuration: .init(file: "/etc/p.conf", loadedAt: "2026-11-30T00:00:00Z"))
        report.problems = [
            .init(
                .critical, "upstream api: no server works: \(String(repeating: "word ", count: 30))"
            ),
            .init(.warning, "a \u{1B}[2J\u{7} wärning\nof two lines"), .init(.note, "drained"),
        ]
        report.traffic.windows = [
            .init(
                minutes: 1, seconds: 60, requests: 10, perSecond: 0.16, serverErrors: 1,
                rejected: 2, wouldReject: 3)
        ]
        report.traffic.verdicts = (0..<20).map {
            .init(route: "r\($0)", verdict: "", action: "", requests: .init(1, 2, 3))
        }
        report.upstreams = [
            .init(
                name: "api", balance: "hash", protocol: "h2c", available: 1, total: 2,
                panic: false, waiting: 0,
                servers: [
                    .init(server: "127.0.0.1:1", configured: "127.0.0.1:1", state: .ready),
                    .init(server: "127.0.0.1:2", configured: "b.test:2", state: .ejected),
                ])
        ]
        report.listeners = [.init(name: "0.0.0.0:443", protocols: ["h2", "http/1.1"], tls: true)]
        return report
    }()

    @Test("fits 100 columns of plain ASCII, problems first, whatever comes")
    func plain() throws {
        let lines = StatusView(Self.report).lines
        #expect(lines.allSatisfy { $0.count <= 100 })
        #expect(lines.joined().unicodeScalars.allSatisfy { 0x20...0x7E ~= $0.value })
        #expect(lines[0].contains("up 3d 4h") && lines[0].contains("serving, ready"))
        let problems = try #require(lines.firstIndex(of: "Problems"))
        #expect(lines[problems + 1].hasPrefix("  !! upstream api: no server works: word"))
        #expect(lines[problems + 2].hasPrefix("     word"))
        #expect(lines[problems + 3] == "  !  a ?[2J? w?rning of two lines")
        #expect(lines[problems + 4] == "  -  drained")
        let traffic = try #require(lines.firstIndex(of: "Traffic"))
        #expect(traffic > problems)
        #expect(lines.contains("  ... and 5 more; --json has all of them"))
        #expect(lines.contains("  r0     -        -       1      2      3"))
    }

    @Test("lists servers that are away before those that work")
    func servers() throws {
        let lines = StatusView(Self.report).lines.filter { $0.hasPrefix("  api ") }
        #expect(lines.map { $0.split(separator: " ")[2] } == ["ejected", "ready"])
        #expect(lines[0].hasSuffix("b.test:2"))
    }

    @Test("has colours only where they are wanted")
    func colours() {
        #expect(!StatusView(Self.report).lines.joined().contains("\u{1B}"))
        let coloured = StatusView(Self.report, isColoured: true).lines
        #expect(coloured.contains("\u{1B}[1mTraffic\u{1B}[0m"))
        #expect(coloured.contains { $0.hasPrefix("\u{1B}[31m  !! ") })
        #expect(coloured.contains { $0.hasPrefix("\u{1B}[33m  !  ") })
    }

    @Test(
        "tells spans of time by their two largest units",
        arguments: [
            (0, "0s"), (59, "59s"), (60, "1m"), (61, "1m 1s"), (3600, "1h"), (3661, "1h 1m"),
            (86_400, "1d"), (90_061, "1d 1h"), (-5, "0s"),
        ] as [(Int64, String)])
    func spans(_ seconds: Int64, _ text: String) {
        #expect(StatusView.span(seconds) == text)
    }

    @Test("the document reads back as what it was written from")
    func document() throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let bytes = try encoder.encode(Self.report)
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("\"uptime_seconds\":273600") && text.contains("\"15m\":3"))
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        #expect(try decoder.decode(StatusReport.self, from: bytes) == Self.report)
    }
}
