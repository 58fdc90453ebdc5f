internal import Attestation
internal import Configuration
internal import Policy
internal import Proxy
internal import Replay

/// What the proxy would think of a verified token's use on a route: whether it is meant for one
/// use, and whether it had that.
struct UseJudgement {
    /// `verified`, or what it is instead.
    private(set) var verdict = Verdict.verified
    private(set) var steps: [VerificationStep] = []
    /// The store was asked, so its word decides, and counts for as much as `replay` says.
    private(set) var isOfStore = false
    /// Why it is not known whether the token was used, when it is not.
    private(set) var useUnknown: String?

    /// - Parameters:
    ///   - text: The whole token.
    ///   - at: When the request would come.
    init(
        _ token: VerifiedToken, text: [UInt8], of configuration: Configuration,
        claims inspector: any ClaimInspector, at: ClaimInstant
    ) {
        let longest = configuration.replay.limitedUseMaxLifetime
        // The verifier has bounded it by days; what formats it multiplies.
        let lifetime = spelling(of: .seconds(min(token.lifetime, 1 << 32)))
        let isLimitedUse = token.isLimitedUse(upTo: longest.components.seconds)
        let limit = "limited-use up to \(spelling(of: longest))"
        steps.append(
            VerificationStep(
                name: "limited_use",
                outcome: isLimitedUse
                    ? .holds("\(lifetime), \(limit)")
                    : .fails("\(lifetime), a session token: \(limit)")))
        guard isLimitedUse else {
            verdict = .notLimitedUse
            return
        }
        let issuer = configuration.projects[token.project].project.issuer
        let claim = Claim(of: token, issuer: issuer, text: text.span, at: at)
        inspect(claim, configuration, inspector)
    }

    private mutating func inspect(
        _ claim: Claim, _ configuration: Configuration, _ inspector: any ClaimInspector
    ) {
        let store = StoreWording(configuration).name
        switch inspector.inspect(claim, in: configuration) {
        case .unknown(let reason):
            steps.append(VerificationStep(name: "claim", outcome: .skipped(reason)))
            useUnknown = reason
        case .failed(let reason):
            isOfStore = true
            verdict = .unavailable(.replayStore)
            steps.append(
                VerificationStep(
                    name: "claim",
                    outcome: .fails("store \(store) cannot be asked from here: \(reason)")))
        case .answered(let outcome):
            isOfStore = true
            verdict = Verdict(outcome)
            let words = "store \(store): \(Self.words(outcome))"
            steps.append(
                VerificationStep(
                    name: "claim", outcome: outcome == .claimed ? .holds(words) : .fails(words)))
        }
    }

    private static func words(_ outcome: ClaimOutcome) -> String {
        switch outcome {
        case .claimed: "fresh, never used"
        case .reused: "used before"
        case .predates: "issued before the store began to remember, so nobody knows"
        case .expired: "so old that its use may be forgotten: the clock went back"
        case .full: "as many claims as it may have, none of them expired"
        case .unavailable(let failure): "cannot be asked, \(failure.rawValue)"
        case .refused: "not accepted by it"
        case .unsupported: "not of a kind that it takes"
        }
    }
}
