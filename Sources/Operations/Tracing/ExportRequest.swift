internal import Attestation
internal import Configuration

/// The document that a collector gets, and the one that it answers with (OTLP 1.0, JSON encoding).
enum ExportRequest {
    /// A request with the spans of a batch.
    static func body(_ batch: SpanQueue.Batch, _ settings: Tracing, version: String) -> [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(batch.bytes.count + 1024)
        let name = LineWriter.rendering(settings.serviceName, .json)
        let version = LineWriter.rendering(version, .json)
        append("{\"resourceSpans\":[{\"resource\":{\"attributes\":[", to: &body)
        append("{\"key\":\"service.name\",\"value\":{\"stringValue\":", to: &body)
        body += name
        append("}},{\"key\":\"service.version\",\"value\":{\"stringValue\":", to: &body)
        body += version
        append("}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"portcullis\",\"version\":", to: &body)
        body += version
        append("},\"spans\":[", to: &body)
        // Behind the last span there is a comma, too, and a line feed.
        body += batch.bytes.dropLast(2)
        append("]}]}]}", to: &body)
        return body
    }

    /// How many spans a collector that took the others did not take. An answer without the number,
    /// or that is no JSON, says none.
    static func rejected(_ answer: [UInt8]) -> Int {
        guard let document = try? JSONDocument(answer),
            let partial = document.member("partialSuccess"),
            let count = document.member("rejectedSpans", of: partial)
        else { return 0 }
        if let number = document.integer(count) { return Int(clamping: number) }
        // 64-bit numbers are strings in protobuf's JSON.
        guard let text = document.string(count) else { return 0 }
        let digits = text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        return max(0, Int(digits) ?? 0)
    }

    private static func append(_ text: StaticString, to body: inout [UInt8]) {
        text.withUTF8Buffer { body.append(contentsOf: $0) }
    }
}
