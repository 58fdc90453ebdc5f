internal import Attestation
internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor
internal import Replay
internal import TLS

/// `portcullis explain`: what would happen to a request, and why. Sends the backend nothing.
struct ExplainCommand {
    private let request: ExplainRequest
    private let console: Console

    init(_ request: ExplainRequest, _ console: Console) {
        self.request = request
        self.console = console
    }

    /// Explains the request.
    func perform() -> ExitCode {
        guard let configuration = LoadedConfiguration(request.configuration, console)?.value else {
            return .wrong
        }
        guard let token = readToken() else { return .wrong }
        let sent: SentRequest
        do {
            sent = try SentRequest(request, token: token.isEmpty ? nil : token)
        } catch {
            return refuse(error)
        }
        show(sent)
        showCertificates(sent, configuration)
        let choice = RouteChoice(configuration.routes, sent)
        guard let match = choice.match else {
            console.print("\nRoute\n  none serves this host, path and method")
            show(choice.others)
            return conclude(.wrong, "refused: 404, and nothing is forwarded")
        }
        let route = configuration.routes.routes[match.route]
        show(match, route, choice)
        RuleReport(route, configuration).print(console)
        return judge(sent, route, configuration)
    }

    /// Empty when there is none; nil when the standard input cannot be read.
    private func readToken() -> String? {
        switch request.token {
        case nil: return ""
        case .text(let token): return token
        case .standardInput:
            guard let text = console.readInput() else {
                console.complain("portcullis: the standard input cannot be read, or is too long")
                return nil
            }
            let isLineEnd = { (character: Character) in character.isNewline }
            return String(text.reversed().drop(while: isLineEnd).reversed())
        }
    }

    private func refuse(_ error: MalformedMessage) -> ExitCode {
        console.print("Request\n  \(request.method) \(redactedTarget)")
        return conclude(
            .wrong,
            "refused: \(error.status), malformed in \(error.kind.rawValue), before any route is "
                + "looked for")
    }

    private func show(_ sent: SentRequest) {
        console.print("Request")
        line("method", text(sent.method))
        line("host", text(sent.host))
        let path = text(sent.path)
        let written = String(request.url.target.prefix { $0 != "?" })
        line("path", path == written ? path : "\(path) (written \(written))")
        if !sent.query.isEmpty { line("query", "\(sent.query.count) bytes, not shown") }
        if request.url.hadFragment { line("fragment", "not sent: clients keep it") }
    }

    /// Which certificate a client of an https URL is shown, by each listener that has any.
    private func showCertificates(_ sent: SentRequest, _ configuration: Configuration) {
        if !request.url.isEncrypted { return }
        let host = String(decoding: sent.host, as: UTF8.self)
        let listeners = ListenerCertificates.all(configuration, now: console.now())
        if listeners.isEmpty { return }
        console.print("\nCertificate")
        for listener in listeners {
            let (index, isForName) = listener.choice(for: host)
            guard listener.entries.indices.contains(index) else { continue }
            let entry = listener.entries[index]
            line("listener", listener.listen.description)
            line("file", entry.files.certificate)
            switch entry.content {
            case .success(let certificate):
                line("names", certificate.names.joined(separator: ", "))
                line("expires", certificate.lastDay)
                if !isForName {
                    line("caution", "it is not for this host, but the first of the listener")
                }
            case .failure(let error): line("problem", error.description)
            }
        }
    }

    private func show(_ match: RouteMatch, _ route: Route, _ choice: RouteChoice) {
        console.print("\nRoute")
        line("chosen", describe(route))
        let reason =
            switch match.reason {
            case .mostSpecific: "it is the most specific one for this host, path and method"
            case .unknownMethod: "the method is unknown, and this is the strictest of its routes"
            case .lookAlike:
                "a backend may take the path for this route's, which is stricter than its own"
            }
        line("because", reason)
        show(choice.others)
    }

    private func show(_ others: [(route: Route, obstacle: RouteChoice.Obstacle)]) {
        for other in others {
            line("not", "\(describe(other.route)): \(other.obstacle.rawValue)")
        }
    }

    private func describe(_ route: Route) -> String {
        let hosts = route.hosts.isEmpty ? "" : route.hosts.joined(separator: "|")
        let methods = route.methods.isEmpty ? "any" : route.methods.joined(separator: "|")
        return "\(route.name) (\(methods) \(hosts)\(route.path))"
    }

    private func judge(
        _ sent: SentRequest, _ route: Route, _ configuration: Configuration
    ) -> ExitCode {
        let keys: any KeySetSource =
            request.fetchesKeys
            ? console.fetchedKeySets : LocalKeySets(surroundings: console.surroundings)
        let judgement = TokenJudgement(
            sent, on: route, of: configuration, keys: keys, now: console.now())
        let use = judgeUse(judgement, route, configuration)
        let verdict = use?.verdict ?? judgement.verdict
        console.print("\nToken")
        for step in judgement.steps + (use?.steps ?? []) { show(step) }
        line("verdict", words(verdict))
        if let note = judgement.note { line("note", note) }
        let client = EnforcedClient(sent, route, judgement, clientIP: request.clientIP)
        console.print("\nDecision")
        line("client", client.description)
        if request.hasForwardingField {
            line("caution", "who asks is --client-ip: forwarding fields count from trusted_proxies")
        }
        let provisos = Provisos(judgement, use, route)
        for caution in provisos.cautions { line("caution", caution) }
        let upstream = RouteWording(configuration).upstream(of: route)
        if judgement.isPreflight, route.cors?.answerPreflights == true {
            return conclude(.done, "answered here: a preflight")
        }
        let enforcement = route.enforcement(storeDefault: configuration.replay.whenUnavailable)
        let rules = use?.isOfStore == true ? enforcement.ofClaims : enforcement
        switch rules.decide(verdict, isInShare: { client.isInside }) {
        case .forward(let permit):
            line("action", permit.action.rawValue)
            let server = configuration.upstreams[route.upstream]
            let handshake =
                sent.head.wantsWebSocket && server.serverProtocol.isMultiplexed
                ? Self.extendedConnect(server.serverProtocol) : ""
            let reservation =
                permit.action == .wouldReject
                ? ", although enforcement would refuse it with "
                    + "\(verdict.rejectionCode?.rawValue ?? "")" : ""
            return conclude(
                .done,
                "forwarded to \(upstream)\(handshake)\(reservation)\(provisos.condition)")
        case .reject(let code):
            line("action", Action.reject.rawValue)
            return conclude(.wrong, "refused: \(code.status) \(code.rawValue)")
        }
    }

    /// Only the server itself can say whether it takes a WebSocket over HTTP/2 (RFC 8441).
    private static func extendedConnect(_ version: Upstream.ServerProtocol) -> String {
        let problem = ProxyProblem.webSocketNotSupported
        return " if its servers offer WebSockets over \(version.rawValue) (RFC 8441), "
            + "else refused: \(problem.status) \(problem.rawValue)"
    }

    /// What the token's use comes to; nil where it does not matter.
    private func judgeUse(
        _ judgement: TokenJudgement, _ route: Route, _ configuration: Configuration
    ) -> UseJudgement? {
        let enforcement = route.enforcement(storeDefault: configuration.replay.whenUnavailable)
        guard enforcement.replay != .off, judgement.verdict == .verified,
            let token = judgement.token
        else { return nil }
        return UseJudgement(
            token.verified, text: token.text, of: configuration, claims: console.claims,
            at: ClaimInstant(wallMicroseconds: console.now() * 1_000_000, monotonic: .now))
    }

    private func show(_ step: VerificationStep) {
        switch step.outcome {
        case .holds(let detail): line(step.name, "ok       \(detail)")
        case .fails(let detail): line(step.name, "FAILS    \(detail)")
        case .skipped(let detail): line(step.name, "skipped  \(detail)")
        }
    }

    private func words(_ verdict: Verdict) -> String {
        "\(verdict.word)" + (verdict.reason.map { ", reason \($0)" } ?? "")
    }

    private func conclude(_ code: ExitCode, _ result: String) -> ExitCode {
        console.print("\nResult\n  \(request.method) \(redactedTarget) is \(result)")
        return code
    }

    /// The URL without its query, which may hold secrets.
    private var redactedTarget: String {
        let path = request.url.target.prefix { $0 != "?" }
        return printable(request.url.authority + path)
    }

    private func line(_ name: String, _ value: String) {
        let padding = String(repeating: " ", count: max(1, 12 - name.count))
        console.print("  \(name)\(padding)\(printable(value))")
    }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

/// What the result depends on.
private struct Provisos {
    /// Sentences.
    private(set) var cautions: [String] = []
    /// Ends the result's sentence, if anything is left open.
    private(set) var condition = ""

    init(_ judgement: TokenJudgement, _ use: UseJudgement?, _ route: Route) {
        var open: [String] = []
        let isAnswered = judgement.isPreflight && route.cors?.answerPreflights == true
        if let limit = route.rateLimit, limit.mode == .enforce, !isAnswered {
            cautions.append(
                "what the client has used of rate_limit is not known; beyond it: 429 "
                    + ProxyProblem.rateLimited.rawValue)
            open.append("the rate limit has room for it")
        }
        if let reason = judgement.signatureUnchecked {
            cautions.append("the signature was not checked: \(reason)")
            open.append("the signature holds")
        }
        if let reason = use?.useUnknown {
            cautions.append("whether the token was used is not known: \(reason)")
            open.append("the token was not used before")
        }
        if !open.isEmpty { condition = ", provided \(open.joined(separator: " and "))" }
    }
}
