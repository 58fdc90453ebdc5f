internal import Attestation
internal import Configuration
internal import HTTP
internal import Policy

/// What the proxy would think of a request's token on a route, step by step.
struct TokenJudgement {
    /// The verdict; when keys were missing, the one that a good signature would lead to.
    private(set) var verdict: Verdict
    private(set) var steps: [VerificationStep] = []
    /// Why the signature was not checked, when it was not.
    private(set) var signatureUnchecked: String?
    /// The app that a verified token names.
    private(set) var app: AppIndex?
    private(set) var appID: String?
    /// The token and its text, when nothing is wrong with it, or could be but its signature.
    private(set) var token: (verified: VerifiedToken, text: [UInt8])?
    /// The request asks whether another may be sent (Fetch, section 4.8).
    private(set) var isPreflight = false
    /// In words, where the verdict needs any.
    private(set) var note: String?

    init(
        _ request: SentRequest, on route: Route, of configuration: Configuration,
        keys source: any KeySetSource, now: Int64
    ) {
        verdict = .exempt
        let verifier = TokenVerifier(projects: configuration.projects.map(\.project))
        if request.head.isPreflight {
            isPreflight = true
            note = "a preflight: browsers send it without a token"
            return
        }
        if route.mode == .off {
            note = "the route does not look at tokens"
            return
        }
        if URLTokenScanner.carriesToken(
            request.query.span, isToken: verifier.isTokenOfServedIssuer)
        {
            verdict = .invalid(.inURL)
            note = "the query carries a token, where logs and proxies on the way keep it"
            return
        }
        let tokens = request.tokens(on: route)
        guard let token = tokens.first else {
            judgeMissing(request, route, configuration)
            return
        }
        if tokens.count > 1 {
            verdict = .invalid(.duplicate)
            note = "there are \(tokens.count) tokens"
            return
        }
        judge(token, route, configuration, verifier, source, now)
    }

    private mutating func judgeMissing(
        _ request: SentRequest, _ route: Route, _ configuration: Configuration
    ) {
        let userAgent = request.values(of: .userAgent).first ?? []
        let reason = route.missingReason(
            configuration.projects.map(\.fingerprints), hasField: request.hasField,
            userAgent: userAgent.span)
        verdict = .missing(reason)
        note =
            switch reason {
            case .outdatedClient: "the request bears a fingerprint of an older build of an app"
            case .unknownOrigin: "nothing says that the request comes from one of the apps"
            }
    }

    private mutating func judge(
        _ token: [UInt8], _ route: Route, _ configuration: Configuration,
        _ verifier: TokenVerifier, _ source: any KeySetSource, _ now: Int64
    ) {
        var sets: [Int: Result<KeySet, KeysNotLoaded>] = [:]
        let keys = { (project: Int) -> KeySet? in
            let result = sets[project] ?? source.keySet(of: configuration.projects[project])
            sets[project] = result
            return try? result.get()
        }
        steps = verifier.explain(token.span, now: now, keys: keys)
        let found = verifier.verify(token.span, now: now, keys: keys)
        verdict = route.verdict(of: found)
        switch found {
        case .verified(let verified): accept(verified, token, on: route)
        case .attestationFailed: note = "the app's SDK could not attest: see its own log"
        case .debugSecret:
            note = "a debug secret belongs into the Firebase console, never into a request"
        case .invalid, .unknownKey, .notAdmitted: break
        case .keysUnavailable(let project):
            if case .failure(let error)? = sets[project] { signatureUnchecked = error.reason }
            steps = steps.map(Self.withoutKeys)
            let assumed = verifier.assumingSignature(token.span, now: now)
            verdict = route.verdict(of: assumed)
            if case .verified(let verified) = assumed { accept(verified, token, on: route) }
        }
    }

    private mutating func accept(_ verified: VerifiedToken, _ text: [UInt8], on route: Route) {
        token = (verified, text)
        explainApp(verified, on: route)
    }

    /// The last step: may this app call this route?
    private mutating func explainApp(_ token: VerifiedToken, on route: Route) {
        appID = token.appID
        app = token.app.map { AppIndex(project: token.project, app: $0) }
        let outcome: VerificationStep.Outcome =
            switch route.acceptance(of: token) {
            case .accepted: .holds("\"\(token.appID)\" may call this route")
            case .projectNotListed: .fails("its project is not among the route's projects")
            case .appNotListed: .fails("\"\(token.appID)\" is not among the route's apps")
            }
        steps.append(VerificationStep(name: "app", outcome: outcome))
    }

    /// Without keys nothing is known about the signature, which is no failure of the token.
    private static func withoutKeys(_ step: VerificationStep) -> VerificationStep {
        ["key", "signature"].contains(step.name)
            ? VerificationStep(name: step.name, outcome: .skipped("no keys")) : step
    }
}
