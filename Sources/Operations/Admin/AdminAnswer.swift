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
    /// Names the methods that would be right (RFC 9110, section 15.5.6).
    var allowsOnlyReading = false

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
        if allowsOnlyReading { output.appendField("Allow", "GET, HEAD") }
        if closes { output.appendField("Connection", "close") }
        output.appendLineEnd()
        if includesBody { output.append(body) }
    }
}
