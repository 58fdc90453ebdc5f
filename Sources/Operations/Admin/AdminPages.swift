internal import Configuration
internal import HTTP
public import Proxy
internal import Reactor

/// What the admin listener answers; needs no socket to be tested.
public struct AdminPages: Sendable {
    private static let reading: StaticString = "GET, HEAD"
    private static let paths =
        "/status, /metrics, /healthz, /readyz, and POST /upstreams/NAME/servers/ADDRESS/drain or /undrain"

    private let metrics: MetricsPage
    private let readiness: Readiness
    private let access: AdminAccess
    private let control: (any AdminControl)?
    private let events: any EventLog

    /// Makes the pages of one process.
    ///
    /// - Parameters:
    ///   - access: Who may change something.
    ///   - control: Does it; nil: nothing can be changed.
    ///   - events: Where wrong tokens are reported.
    public init(
        metrics: MetricsPage, readiness: Readiness, access: AdminAccess,
        control: (any AdminControl)?, events: any EventLog
    ) {
        self.metrics = metrics
        self.readiness = readiness
        self.access = access
        self.control = control
        self.events = events
    }

    /// The answer to a request.
    ///
    /// - Parameter isForThisMachine: The listener has a loopback address. Pages in browsers reach
    ///   those, under whatever name their owner has lead there (DNS rebinding).
    func answer(_ request: AdminRequest, isForThisMachine: Bool = false) async -> AdminAnswer {
        // Answering is the proof: nothing else may fail this (pitfall O6).
        if request.path == "/healthz" {
            return read(request) { AdminAnswer(200, text: "ok\n") }
        }
        if request.path == "/readyz" { return read(request, answerReadiness) }
        if isForThisMachine && !request.isNamedDirectly {
            return AdminAnswer(
                421,
                problem: "this listener is for this machine alone: ask for it as 127.0.0.1, [::1] "
                    + "or localhost (the Host field)")
        }
        if request.path == "/metrics" {
            return read(request) { AdminAnswer(200, MetricsText.contentType, metrics.render()) }
        }
        if request.path == "/status" { return await answerStatus(request) }
        if let change = ServerChangePath(request.path) { return await perform(change, request) }
        return AdminAnswer(404, problem: "there is no such page; there are \(Self.paths)")
    }

    private func read(_ request: AdminRequest, _ page: () -> AdminAnswer) -> AdminAnswer {
        if request.method == .get || request.method == .head { return page() }
        var refusal = AdminAnswer(405, problem: "this page can only be read")
        refusal.allow = Self.reading
        return refusal
    }

    private func answerReadiness() -> AdminAnswer {
        struct Page: Encodable {
            var ready: Bool
            var reasons: [String]
        }
        let reasons = readiness.reasons()
        let page = Page(ready: reasons.isEmpty, reasons: reasons)
        return AdminAnswer(page.ready ? 200 : 503, json: page)
    }

    private func answerStatus(_ request: AdminRequest) async -> AdminAnswer {
        // Before the loops are asked anything.
        let refusal = read(request) { AdminAnswer(200, text: "") }
        if refusal.status != 200 { return refusal }
        guard let control else { return Self.notServing }
        return AdminAnswer(200, json: await control.status())
    }

    private static let notServing = AdminAnswer(
        503, problem: "the process is not serving yet, or not any more")

    // MARK: Changes

    private func perform(_ change: ServerChangePath, _ request: AdminRequest) async -> AdminAnswer {
        if request.method != .post {
            var refusal = AdminAnswer(405, problem: "a change is a POST")
            refusal.allow = "POST"
            return refusal
        }
        if let refusal = refusal(request) { return refusal }
        guard let control else { return Self.notServing }
        let result = await control.setDraining(
            change.isDraining, server: change.server, upstream: change.upstream,
            client: request.client)
        switch result {
        case .done(let done):
            access.count(done.isChanged ? .done : .unchanged)
            return AdminAnswer(200, json: done)
        case .unknownUpstream(let known):
            access.count(.unknown)
            return AdminAnswer(
                404, problem: "there is no upstream \(change.upstream); there are \(list(known))")
        case .unknownServer(let known):
            access.count(.unknown)
            return AdminAnswer(
                404,
                problem: "upstream \(change.upstream) has no server \(change.server); it has "
                    + list(known))
        }
    }

    /// Why a request may change nothing; nil when it may.
    private func refusal(_ request: AdminRequest) -> AdminAnswer? {
        switch access.judge(request.authorization, at: .now) {
        case .granted: return nil
        case .readOnly(let reason):
            access.count(.readOnly)
            return AdminAnswer(403, problem: reason)
        case .missing:
            access.count(.unauthorized)
            var answer = AdminAnswer(
                401,
                problem: "changes need \"Authorization: Bearer TOKEN\", with the token that "
                    + "token_file holds")
            answer.challenge = "Bearer realm=\"portcullis admin\""
            return answer
        case .wrong(let unreported):
            access.count(.unauthorized)
            events.log(
                .warning, "a wrong admin token was sent",
                [
                    (name: "client", value: request.client), (name: "path", value: request.path),
                    (name: "not_reported", value: String(unreported)),
                ])
            return wrongToken(401)
        case .throttled(let seconds):
            access.count(.throttled)
            var answer = wrongToken(429)
            answer.retryAfter = seconds
            return answer
        }
    }

    private func wrongToken(_ status: UInt16) -> AdminAnswer {
        var answer = AdminAnswer(status, problem: "this is not the token of token_file")
        answer.challenge = "Bearer realm=\"portcullis admin\", error=\"invalid_token\""
        return answer
    }

    private func list(_ names: [String]) -> String {
        names.isEmpty
            ? "none" : names.prefix(10).joined(separator: ", ") + (names.count > 10 ? ", …" : "")
    }
}
