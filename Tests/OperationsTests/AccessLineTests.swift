import Attestation
import Configuration
import HTTP
import Policy
import Proxy
import TestKit
import Testing

@testable import Operations

@Suite("Access log")
struct AccessLineTests {
    private func line(_ record: RequestRecord, _ configuration: Configuration) -> String {
        var formatter = AccessLine()
        let names = ConfigurationNames(configuration)
        return render { formatter.append(record, names: names, to: &$0) }
    }

    @Test("says everything that is known about a request, as one JSON object")
    func fullLine() throws {
        let record = RequestRecord.example()
        #expect(
            try parse(line(record, exampleConfiguration())) == [
                "ts": .text("2026-11-30T06:13:47.125Z"), "level": .text("info"),
                "msg": .text("request"), "request_id": .text("0af7651916cd43dd"),
                "client": .text("192.0.2.7"), "listener": .text("0.0.0.0:8080"),
                "method": .text("POST"), "host": .text("api.example.com"),
                "target": .text("/v1/transfers"), "protocol": .text("http/1.1"),
                "route": .text("everything-else"), "verdict": .text("invalid"),
                "reason": .text("expired"), "action": .text("would_reject"),
                "code": .text("token_expired"), "app": .text("web"), "cached": .flag(true),
                "share_key_missing": .flag(true), "debug_secret": .flag(true),
                "status": .number(200), "bytes_in": .number(12), "bytes_out": .number(34_567),
                "duration_us": .number(2500), "verify_us": .number(40),
                "upstream_us": .number(2100), "upstream": .text("legacy"),
                "upstream_server": .text("[::1]:1"), "failure": .text("upstream_reset"),
                "malformed": .text("chunk"), "user_agent": .text("app/1.0 (X; Y)"),
            ])
    }

    @Test("leaves out what there is nothing to say about")
    func bareLine() throws {
        let fields = try parse(line(RequestRecord(), exampleConfiguration()))
        #expect(
            fields.keys.sorted() == [
                "bytes_in", "bytes_out", "client", "duration_us", "host", "level", "listener",
                "method", "msg", "protocol", "request_id", "status", "target", "ts", "verify_us",
            ])
    }

    @Test("is logfmt in format text, with quotes where they are needed")
    func textLine() throws {
        let record = RequestRecord.example()
        record.host = []
        record.code = nil
        record.failure = nil
        record.malformed = nil
        let text = try line(record, exampleConfiguration(format: .text))
        #expect(
            text == """
                ts=2026-11-30T06:13:47.125Z level=info msg=request \
                request_id=0af7651916cd43dd client=192.0.2.7 listener=0.0.0.0:8080 method=POST \
                host="" target=/v1/transfers protocol=http/1.1 user_agent="app/1.0 (X; Y)" \
                route=everything-else verdict=invalid reason=expired action=would_reject app=web \
                cached=true share_key_missing=true debug_secret=true status=200 bytes_in=12 \
                bytes_out=34567 duration_us=2500 verify_us=40 upstream_us=2100 upstream=legacy \
                upstream_server=[::1]:1
                """)
    }

    @Test("names an app without an alias `other`, and survives indices of nothing")
    func oddIndices() throws {
        let record = RequestRecord.example()
        for app in [nil, AppIndex(project: 0, app: 2), AppIndex(project: 7, app: 0)] {
            record.app = app
            #expect(try parse(line(record, exampleConfiguration()))["app"] == .text("other"))
        }
        record.route = 99
        record.upstream = -1
        record.upstreamServer = "127.0.0.1:5"
        let fields = try parse(line(record, exampleConfiguration()))
        #expect(fields["route"] == nil && fields["upstream"] == nil)
    }

    @Test("shows the rejected and the failed with access = rejected, none with off")
    func selection() {
        let record = RequestRecord()
        record.action = .allow
        #expect(!AccessLine.isWanted(record, .rejected))
        record.action = .wouldReject
        #expect(AccessLine.isWanted(record, .rejected))
        record.action = .reject
        #expect(AccessLine.isWanted(record, .rejected))
        #expect(!AccessLine.isWanted(record, .off))
        record.action = nil
        record.failure = .clientAborted
        #expect(AccessLine.isWanted(record, .rejected))
        #expect(AccessLine.isWanted(RequestRecord(), .all))
    }

    @Test("is one line of strict JSON whatever bytes a client sends")
    func anyBytes() throws {
        var generator = SeededGenerator(seed: 2)
        let record = RequestRecord()
        let configuration = try exampleConfiguration()
        for _ in 0..<500 {
            record.fillWithAwkwardBytes(&generator, most: 400)
            let text = line(record, configuration)
            #expect(text.utf8.allSatisfy { (0x20...0x7E).contains($0) })
            let fields = try parse(text)
            #expect(fields["msg"] == .text("request"))
        }
    }

    @Test("keeps the longest possible line within a line's bounds")
    func longestLine() throws {
        let record = RequestRecord.example()
        let worst = [UInt8](repeating: 0, count: 100_000)
        record.requestID = worst
        record.methodName = worst
        record.host = worst
        record.target = worst
        record.userAgent = worst
        record.listener = String(repeating: "\u{1}", count: 10_000)
        record.clientAddress = record.listener
        var configuration = try exampleConfiguration()
        let name = String(repeating: "\u{1}", count: 10_000)
        configuration.routes = try RouteTable([Route(name: name, path: "/", upstream: 0)])
        configuration.upstreams = [.init(name: name, servers: [.unix(path: name)])]
        configuration.projects[1].project.apps[1].alias = name
        record.route = 0
        record.upstream = 0
        record.upstreamServer = name
        let text = line(record, configuration)
        #expect(text.utf8.count < LogChunk.maximumLine)
        let target = try #require(parse(text)["target"]?.text)
        #expect(target.hasPrefix("%00%00") && target.hasSuffix("…") && target.count == 2049)
    }

    @Test("H5: redacts the values of parameters that carry tokens, and shows the others")
    func secretParameters() throws {
        let record = RequestRecord.example()
        record.target = Array("/v1/x?a=1&ac=short-secret&b=2&App_Check_Token=other".utf8)
        #expect(
            try parse(line(record, exampleConfiguration()))["target"]
                == .text("/v1/x?a=1&ac=[redacted]&b=2&App_Check_Token=[redacted]"))
    }

    @Test(
        "O5: never shows a token, in whatever field a client puts it",
        arguments: [
            "/v1/x?appCheckToken=TOKEN", "/v1/x?a=1&X-Firebase-AppCheck=TOKEN&b=2", "/TOKEN/x",
            "/x?next=%2Fy%3Fac%3DTOKEN", "/x?q=TOKEN#TOKEN", "TOKEN", "//TOKEN@host/",
        ])
    func tokens(_ target: String) throws {
        let token = exampleToken
        let record = RequestRecord.example()
        record.target = Array(target.replacing("TOKEN", with: token).utf8)
        record.userAgent = Array("agent \(token)".utf8)
        record.requestID = Array(token.utf8)
        record.host = Array("\(token).example.com".utf8)
        record.methodName = Array(token.utf8)
        record.clientAddress = token
        for format in Log.Format.allCases {
            let text = try line(record, exampleConfiguration(format: format))
            #expect(!leaks(token, text), "\(text)")
        }
    }
}

@Suite("Access log of rate limits")
struct LimitLineTests {
    @Test(
        "says what a limit did, where it did something",
        arguments: [
            ([], nil, nil), ([.rejected], "reject", nil), ([.wouldReject], "would_reject", nil),
            ([.keyMissing], nil, true), ([.rejected, .keyMissing], "reject", true),
        ] as [(LimitNote, String?, Bool?)])
    func fields(limit: LimitNote, word: String?, isKeyMissing: Bool?) throws {
        let record = RequestRecord()
        record.limit = limit
        var formatter = AccessLine()
        let names = ConfigurationNames(try exampleConfiguration())
        let line = try parse(render { formatter.append(record, names: names, to: &$0) })
        #expect(line["rate_limit"]?.text == word)
        #expect(line["rate_limit_key_missing"] == isKeyMissing.map { .flag($0) })
        #expect(AccessLine.isWanted(record, .rejected) == limit.contains(.wouldReject))
    }
}
