internal import FoundationEssentials
internal import HTTP
internal import Reactor

/// One answer of the admin listener.
struct AdminAnswer {
    /// The status code.
    let status: UInt16
    /// Value of Content-Type.
    let contentType: StaticString
    /// What GET brings.
    let body: [UInt8]
    /// Value of Allow: the methods that would be right (RFC 9110, section 15.5.6).
    var allow: StaticString?
    /// Value of WWW-Authenticate (RFC 6750, section 3).
    var challenge: StaticString?
    /// Value of Retry-After, in seconds.
    var retryAfter: Int?

    /// An answer of any type.
    init(_ status: UInt16, _ contentType: StaticString, _ body: [UInt8]) {
        self.status = status
        self.contentType = contentType
        self.body = body
    }

    /// Plain text.
    init(_ status: UInt16, text body: String) {
        self.init(status, "text/plain; charset=utf-8", Array(body.utf8))
    }

    /// A JSON document, with its members in order and a line feed behind it.
    init(
        _ status: UInt16, json document: some Encodable,
        type contentType: StaticString = "application/json"
    ) {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "+Inf", negativeInfinity: "-Inf", nan: "NaN")
        // Flags, numbers and strings always encode; an empty body beside the right status would
        // still do.
        let body = (try? encoder.encode(document)).map { [UInt8]($0) } ?? []
        self.init(status, contentType, body + [UInt8(ascii: "\n")])
    }

    /// A problem document (RFC 9457).
    init(_ status: UInt16, problem detail: String) {
        struct Document: Encodable {
            var title: String
            var status: UInt16
            var detail: String
        }
        self.init(
            status,
            json: Document(title: "\(reasonPhrase(of: status))", status: status, detail: detail),
            type: "application/problem+json")
    }

    /// Appends the answer as it goes over the wire (RFC 9112, section 4).
    ///
    /// - Parameters:
    ///   - seconds: Now, seconds since 1970.
    ///   - includesBody: false for HEAD, whose answer only says how long the body would be.
    ///   - closes: This is the connection's last answer.
    func write(to output: ByteBuffer, at seconds: Int64, includesBody: Bool, closes: Bool) {
        output.appendStatusLine(status)
        output.append("Date: \(HTTPDate(seconds: seconds))\r\n")
        output.appendField("Content-Type", contentType)
        output.appendField("Content-Length", decimal: UInt64(body.count))
        output.appendField("Cache-Control", "no-store")
        output.appendField("X-Content-Type-Options", "nosniff")
        if let allow { output.appendField("Allow", allow) }
        if let challenge { output.appendField("WWW-Authenticate", challenge) }
        if let retryAfter { output.appendField("Retry-After", decimal: UInt64(max(0, retryAfter))) }
        if closes { output.appendField("Connection", "close") }
        output.appendLineEnd()
        if includesBody { output.append(body) }
    }
}
