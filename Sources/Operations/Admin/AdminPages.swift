internal import FoundationEssentials
internal import HTTP

/// What the admin listener answers: pure, so that it can be tested without a socket.
public struct AdminPages: Sendable {
    private let metrics: MetricsPage
    private let readiness: Readiness

    /// Makes the pages of one process.
    public init(metrics: MetricsPage, readiness: Readiness) {
        self.metrics = metrics
        self.readiness = readiness
    }

    /// The answer to a request for `path`, without its query.
    func answer(_ method: HTTP.Method, path: String) -> AdminAnswer {
        let page: () -> AdminAnswer
        switch path {
        case "/metrics":
            page = { AdminAnswer("200 OK", MetricsText.contentType, metrics.render()) }
        case "/healthz":
            // Answering is the proof: nothing else may fail this (pitfall O6).
            page = { AdminAnswer(text: "200 OK", "ok\n") }
        case "/readyz":
            page = answerReadiness
        default:
            return AdminAnswer(text: "404 Not Found", "not found\n")
        }
        if method == .get || method == .head { return page() }
        var refusal = AdminAnswer(text: "405 Method Not Allowed", "only GET and HEAD\n")
        refusal.allowsOnlyReading = true
        return refusal
    }

    private func answerReadiness() -> AdminAnswer {
        struct Page: Encodable {
            var ready: Bool
            var reasons: [String]
        }
        let reasons = readiness.reasons()
        let page = Page(ready: reasons.isEmpty, reasons: reasons)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // A flag and strings always encode; an empty body beside the right status would still do.
        let body = (try? encoder.encode(page)).map { [UInt8]($0) } ?? []
        return AdminAnswer(
            page.ready ? "200 OK" : "503 Service Unavailable", "application/json",
            body + [UInt8(ascii: "\n")])
    }
}

/// One answer of the admin listener.
struct AdminAnswer {
    /// Code and reason phrase.
    let status: String
    let contentType: String
    let body: [UInt8]
    /// Names the methods that would be right (RFC 9110, section 15.5.6).
    var allowsOnlyReading = false

    init(_ status: String, _ contentType: StaticString, _ body: [UInt8]) {
        self.status = status
        self.contentType = "\(contentType)"
        self.body = body
    }

    init(text status: String, _ body: String) {
        self.init(status, "text/plain; charset=utf-8", Array(body.utf8))
    }

    /// The answer to a request that is no proper HTTP, or not for this listener.
    init(refusing status: UInt16, _ word: String) {
        let reason =
            switch status {
            case 405: "Method Not Allowed"
            case 408: "Request Timeout"
            case 414: "URI Too Long"
            case 417: "Expectation Failed"
            case 431: "Request Header Fields Too Large"
            case 501: "Not Implemented"
            case 505: "HTTP Version Not Supported"
            default: "Bad Request"
            }
        self.init(text: "\(status) \(reason)", "\(word)\n")
    }

    /// The answer as it goes over the wire (RFC 9112, section 4).
    ///
    /// - Parameters:
    ///   - seconds: Now, seconds since 1970.
    ///   - includesBody: false for HEAD, whose answer only says how long the body would be.
    ///   - closes: This is the connection's last answer.
    func serialised(at seconds: Int64, includesBody: Bool, closes: Bool) -> [UInt8] {
        var head = "HTTP/1.1 \(status)\r\nDate: \(HTTPDate(seconds: seconds))\r\n"
        head += "Content-Type: \(contentType)\r\nContent-Length: \(body.count)\r\n"
        head += "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        if allowsOnlyReading { head += "Allow: GET, HEAD\r\n" }
        if closes { head += "Connection: close\r\n" }
        head += "\r\n"
        return Array(head.utf8) + (includesBody ? body : [])
    }
}
