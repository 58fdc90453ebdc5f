import Configuration
import Foundation
import HTTP
import Policy
import Proxy
import TestKit
import Testing

@testable import Operations

@Suite("Spans")
struct SpanTests {
    private static let trace = RequestTrace(
        traceID: TraceID(high: 0x0af7_6519_16cd_43dd, low: 0x8448_eb21_1c80_319c),
        parentID: 0xb7ad_6b71_6920_3331, spanID: 0x10, isSampled: true)

    private func spans(_ record: RequestRecord) throws -> [[String: Any]] {
        let names = SpanNames(try exampleConfiguration(format: .text))
        var writer = SpanLine()
        var trace = try #require(record.trace)
        trace.upstreamSpanID = 0x20
        trace.upstreamStart = 100
        let texts = [
            render { writer.appendServer(record, trace, names, to: &$0) },
            render { writer.appendClient(record, trace, names, to: &$0) },
        ]
        return try texts.map { text in
            let json = try JSONSerialization.jsonObject(with: Data(text.utf8))
            return try #require(json as? [String: Any])
        }
    }

    private func attributes(_ span: [String: Any]) throws -> [String: String] {
        let list = try #require(span["attributes"] as? [[String: Any]])
        let pairs = try list.map { item in
            let value = try #require(item["value"] as? [String: String])
            return (try #require(item["key"] as? String), try #require(value.values.first))
        }
        return try Dictionary(pairs) { _, name in throw Twice(name: name) }
    }

    private struct Twice: Error { let name: String }

    @Test("a request is a span of its caller's trace, and asking the upstream one of the request")
    func full() throws {
        let record = RequestRecord.example()
        record.trace = Self.trace
        record.peerAddress = "10.0.0.1"
        let spans = try spans(record)
        let (server, client) = (spans[0], spans[1])
        #expect(server["traceId"] as? String == "0af7651916cd43dd8448eb211c80319c")
        #expect(server["spanId"] as? String == "0000000000000010")
        #expect(server["parentSpanId"] as? String == "b7ad6b7169203331")
        #expect(server["kind"] as? Int == 2)
        #expect(server["startTimeUnixNano"] as? String == "1796019227123456000")
        #expect(server["endTimeUnixNano"] as? String == "1796019227125956000")
        #expect((server["status"] as? [String: Int]) == ["code": 2])
        #expect(client["traceId"] as? String == server["traceId"] as? String)
        #expect(client["parentSpanId"] as? String == "0000000000000010")
        #expect(client["spanId"] as? String == "0000000000000020")
        #expect(client["startTimeUnixNano"] as? String == "1796019227123556000")
        #expect(client["endTimeUnixNano"] as? String == "1796019227125656000")
        #expect(client["name"] as? String == "POST")
        let known = try attributes(server)
        #expect(known["client.address"] == "192.0.2.7")
        #expect(known["network.peer.address"] == "10.0.0.1")
        #expect(known["portcullis.route"] == "everything-else")
        #expect(known["portcullis.app"] == "web")
        #expect(known["error.type"] == "upstream_reset")
        let asked = try attributes(client)
        #expect((asked["server.address"], asked["server.port"]) == ("::1", "1"))
        #expect(asked["portcullis.upstream"] == "legacy")
    }

    @Test("a request of which little is known is a span as well")
    func bare() throws {
        let record = RequestRecord()
        record.trace = RequestTrace(
            traceID: TraceID(high: 0, low: 1), parentID: nil, spanID: 1, isSampled: true)
        let server = try spans(record)[0]
        #expect(server["parentSpanId"] == nil)
        #expect(server["name"] as? String == "HTTP")
        #expect(try attributes(server)["http.request.method"] == "_OTHER")
    }

    @Test("O5: whatever a client sends, a span is one line of JSON without tokens")
    func awkward() throws {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<300 {
            let record = RequestRecord.example()
            record.trace = Self.trace
            record.fillWithAwkwardBytes(&generator, most: 3000)
            record.peerAddress = record.clientAddress
            _ = try spans(record)
        }
        let record = RequestRecord.example()
        record.trace = Self.trace
        record.method = .other
        for path in [\RequestRecord.methodName, \.host, \.userAgent, \.requestID] {
            record[keyPath: path] = Array(exampleToken.utf8)
        }
        record.target = Array("/a/\(exampleToken)?t=\(exampleToken)&pin=hunter2".utf8)
        let text = String(describing: try spans(record))
        #expect(!leaks(exampleToken, text) && !text.contains("hunter2"))
    }

    @Test("the longest that a client can make of a span fits a line")
    func longest() throws {
        let record = RequestRecord.example()
        record.trace = Self.trace
        let worst = [UInt8](repeating: 0xFF, count: 10_000)
        record.methodName = worst
        record.method = .other
        record.host = worst
        record.userAgent = worst
        record.requestID = worst
        record.target = [UInt8(ascii: "/")] + worst
        record.listener = String(repeating: "\u{1}", count: 10_000)
        record.clientAddress = record.listener
        record.peerAddress = record.listener
        var chunk = LogChunk()
        let names = SpanNames(try exampleConfiguration())
        var writer = SpanLine()
        #expect(chunk.appendLine { writer.appendServer(record, Self.trace, names, to: &$0) })
        #expect(chunk.count < LogChunk.maximumLine)
    }
}

@Suite("Spans that wait")
struct SpanQueueTests {
    private func chunk(_ count: Int, _ text: StaticString = "{},") -> LogChunk {
        var chunk = LogChunk()
        for _ in 0..<count { _ = chunk.appendLine { $0.append(text) } }
        return chunk
    }

    @Test("come out in their order, as the elements of an array")
    func order() throws {
        let queue = SpanQueue()
        queue.open(limit: 100, onFull: {})
        for text in ["1,", "2,", "3,"] as [StaticString] {
            var spans = chunk(2, text)
            queue.enqueue(&spans)
            #expect(spans.isEmpty)
        }
        #expect(queue.waiting == 6)
        let batch = try #require(queue.next())
        #expect(String(decoding: batch.bytes, as: UTF8.self) == "1,\n1,\n2,\n2,\n3,\n3,\n")
        #expect(batch.count == 6)
        #expect(queue.next() == nil && queue.waiting == 0)
    }

    @Test("are counted as lost beyond the limit, and there is room again when some are taken")
    func limit() {
        let queue = SpanQueue()
        queue.open(limit: 10, onFull: {})
        for _ in 0..<4 {
            var spans = chunk(4)
            queue.enqueue(&spans)
        }
        #expect(queue.waiting == 8 && queue.totals.dropped == 8)
        #expect(queue.next()?.count == 8)
        var spans = chunk(10)
        queue.enqueue(&spans)
        #expect(queue.waiting == 10 && queue.totals.dropped == 8)
    }

    @Test("are bounded in bytes, too")
    func bytes() {
        let queue = SpanQueue()
        queue.open(limit: 2, onFull: {})
        var large = LogChunk()
        _ = large.appendLine { line in for _ in 0..<9000 { line.append("x") } }
        queue.enqueue(&large)
        #expect(queue.waiting == 0 && queue.totals.dropped == 1)
    }

    @Test("are nobody's while nobody exports, and no loss")
    func closed() {
        let queue = SpanQueue()
        var spans = chunk(3)
        queue.enqueue(&spans)
        #expect(spans.isEmpty && queue.waiting == 0 && queue.totals.dropped == 0)
        queue.open(limit: 10, onFull: {})
        var more = chunk(3)
        queue.enqueue(&more)
        queue.open(limit: 0, onFull: {})
        #expect(queue.next() == nil)
    }

    @Test("call the exporter once when a batch is full, and make no batch that is larger")
    func full() throws {
        let queue = SpanQueue()
        let calls = Calls()
        queue.open(limit: 2000, onFull: { calls.add() })
        for _ in 0..<12 {
            var spans = chunk(100)
            queue.enqueue(&spans)
        }
        #expect(calls.count == 1)
        var sizes: [Int] = []
        while let batch = queue.next() { sizes.append(batch.count) }
        #expect(sizes == [500, 500, 200])
    }
}

@Suite("What a collector gets")
struct ExportRequestTests {
    @Test("is one document with its resource, and the spans without the last comma")
    func document() throws {
        var settings = Tracing(url: "http://127.0.0.1/v1/traces")
        settings.serviceName = "edge \"1\""
        let batch = SpanQueue.Batch(bytes: Array("{},\n{},\n".utf8), count: 2)
        let body = ExportRequest.body(batch, settings, version: "1.2")
        let json = try #require(
            try JSONSerialization.jsonObject(with: Data(body)) as? [String: [[String: Any]]])
        let resource = try #require(json["resourceSpans"]?.first)
        let scope = try #require((resource["scopeSpans"] as? [[String: Any]])?.first)
        #expect((scope["spans"] as? [Any])?.count == 2)
        #expect(String(decoding: body, as: UTF8.self).contains(#""stringValue":"edge \"1\"""#))
    }

    @Test(
        "may be rejected in part",
        arguments: [
            ("{}", 0), ("", 0), ("{\"partialSuccess\":{}}", 0), ("[]", 0),
            ("{\"partialSuccess\":{\"rejectedSpans\":\"3\"}}", 3),
            ("{\"partialSuccess\":{\"rejectedSpans\":3}}", 3),
            ("{\"partialSuccess\":{\"rejectedSpans\":\"-3\"}}", 0),
            ("{\"partialSuccess\":{\"rejectedSpans\":\"99999999999999999999\"}}", 0),
            ("{\"partialSuccess\":{\"rejectedSpans\":null}}", 0),
        ])
    func partial(answer: String, rejected: Int) {
        #expect(ExportRequest.rejected(Array(answer.utf8)) == rejected)
    }
}

/// Counts calls from any thread.
private final class Calls: Sendable {
    private let total = Counter()

    var count: UInt64 { total.total }

    func add() { total.add() }
}
