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
            page = { AdminAnswer(200, MetricsText.contentType, metrics.render()) }
        case "/healthz":
            // Answering is the proof: nothing else may fail this (pitfall O6).
            page = { AdminAnswer(200, text: "ok\n") }
        case "/readyz":
            page = answerReadiness
        default:
            return AdminAnswer(404, text: "not found\n")
        }
        if method == .get || method == .head { return page() }
        var refusal = AdminAnswer(405, text: "only GET and HEAD\n")
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
            page.ready ? 200 : 503, "application/json",
            body + [UInt8(ascii: "\n")])
    }
}
