import Configuration
import Glibc
import Reactor
import TestKit
import Testing

@testable import Operations

@Suite("Event log", .timeLimit(.minutes(1)))
struct EventLoggerTests {
    private func lines(
        _ log: Log, _ body: (EventLogger) -> Void
    ) throws -> [String] {
        let stream = try #require(tmpfile())
        defer { fclose(stream) }
        let file = fileno(stream)
        let writer = try LogWriter(descriptor: file) { _ in [] }
        let events = EventLogger(log, writer: writer, now: { 1_796_019_227_123_456 })
        body(events)
        #expect(writer.start())
        #expect(writer.shutDown(timeLimit: .seconds(10)))
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = pread(file, &bytes, bytes.count, 0)
        return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
            .split(separator: "\n").map(String.init)
    }

    @Test("writes what happened, where and why as JSON")
    func json() throws {
        let lines = try lines(Log()) {
            $0.log(.error, "reload failed", [(name: "file", value: "/etc/\"p\".conf:3:1")])
        }
        #expect(
            lines == [
                #"{"ts":"2026-11-30T06:13:47.123Z","level":"error","msg":"reload failed","#
                    + #""file":"/etc/\"p\".conf:3:1"}"#
            ])
    }

    @Test("writes the same as text")
    func text() throws {
        var log = Log()
        log.format = .text
        let lines = try lines(log) { $0.log(.info, "started", [(name: "x", value: "x=1")]) }
        #expect(
            lines == [#"ts=2026-11-30T06:13:47.123Z level=info msg=started x="x=1""#])
    }

    @Test("shows the levels up to the configured one", arguments: Log.Level.allCases)
    func level(_ level: Log.Level) throws {
        var log = Log()
        log.level = level
        let shown = try lines(log) { events in
            for level in Log.Level.allCases { events.log(level, level.rawValue, []) }
        }
        let expected = Log.Level.allCases.filter { $0 <= level }.map(\.rawValue)
        #expect(try shown.map { try parse($0)["msg"]?.text } == expected)
    }

    @Test("takes over level and format of a new configuration")
    func adopt() throws {
        let lines = try lines(Log()) { events in
            events.log(.debug, "unseen", [])
            var log = Log()
            log.level = .debug
            log.format = .text
            events.adopt(log)
            events.log(.debug, "seen", [])
        }
        #expect(lines == ["ts=2026-11-30T06:13:47.123Z level=debug msg=seen"])
    }

    @Test("O5: stays one bounded line of JSON without a token whatever it is given")
    func anything() throws {
        var generator = SeededGenerator(seed: 3)
        var lines = try lines(Log()) { events in
            for _ in 0..<200 {
                let fields = (0..<Int.random(in: 0...20, using: &generator)).map { _ in
                    (
                        name: ["ts", "level", "msg", "a", "b", exampleToken]
                            .randomElement(using: &generator) ?? "",
                        value: String(decoding: generator.awkwardBytes(900), as: UTF8.self)
                            + exampleToken
                    )
                }
                events.log(.error, "failed: Bearer \(exampleToken) \(fields)", fields)
            }
            let worst = String(repeating: "\0", count: 10_000)
            events.log(.error, worst, (0..<20).map { (name: "\(worst)\($0)", value: worst) })
        }
        #expect(lines.count == 201)
        let longest = lines.removeLast()
        #expect(longest.utf8.count < LogChunk.maximumLine)
        for line in lines + [longest] {
            let fields = try parse(line)
            #expect(fields["level"] == .text("error"))
            #expect(fields["ts"] == .text("2026-11-30T06:13:47.123Z"))
            #expect(!leaks(exampleToken, line))
        }
    }
}
