internal import Attestation
internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor
internal import Replay

/// What an exchange has to do with the claim store.
struct ClaimState {
    /// The claim that has to be taken back if nothing of the request reaches the backend.
    var held: Claim?
    /// What was claimed decides about the request, so the client must be told what became of it.
    var isEnforced = false
    /// How long the store may take, nanoseconds.
    var patience: Int64 = 0
}

/// One limited-use token, one request (docs/decisions/0050-the-claim.md).
extension Exchange {
    /// Whether the verified token lives too long for one that is used once.
    var hasSessionToken: Bool {
        guard let token = record.token else { return false }
        let (lifetime, overflow) = token.expiresAt.subtractingReportingOverflow(token.issuedAt)
        return overflow || lifetime > serving.limitedUseLifetime
    }

    /// Spends the request's token, exactly once for each request: after this nothing that is sent
    /// again claims again.
    ///
    /// - Returns: `verified` when it was not spent before, or what is known instead.
    func claim(_ client: ClientConnection, _ route: ServedRoute) async -> Verdict {
        let isEnforced = route.claimEnforcement.replay == .enforce && isInShare(route)
        claims.isEnforced = isEnforced
        claims.patience = isEnforced ? serving.claimPatience : serving.monitoredClaimPatience
        guard let store = state.claims, let token = record.token else {
            // Nobody can be asked, and a request must not pass because of that.
            return note(.unavailable(.system))
        }
        let claim = makeClaim(token, needsToken: store.needsToken)
        let before = MonotonicInstant.now
        let outcome = await store.claim(
            claim, waiter: client.waiter,
            until: before.advanced(byNanoseconds: claims.patience))
        record.claimMicroseconds = MonotonicInstant.now.microseconds(since: before)
        switch outcome {
        case .claimed, .predates: claims.held = claim
        case .reused, .expired, .full, .unavailable, .refused, .unsupported: break
        }
        return note(outcome)
    }

    /// Takes the claim back: provably no byte of the request left for the backend, or is about to.
    func release(_ client: ClientConnection) async {
        guard let claim = claims.held, let store = state.claims else { return }
        claims.held = nil
        // A new deadline: the one of the claim is over when connecting took its time.
        let deadline = MonotonicInstant.now.advanced(byNanoseconds: claims.patience)
        record.isClaimReleased = await store.release(claim, waiter: client.waiter, until: deadline)
    }

    /// The answer to a problem, and what it says of the token where the next request depends on it.
    func answer(to problem: ProxyProblem) -> Problem {
        // A monitored request gets the answer that it always got (pitfall M1).
        if !claims.isEnforced { return problem.problem }
        if record.isClaimReleased { return problem.unspent }
        return record.mayBeSpent ? problem.spent : problem.problem
    }

    private func makeClaim(_ token: VerifiedToken, needsToken: Bool) -> Claim {
        var claim = Claim(
            key: claimKey(of: token), issuedAt: token.issuedAt,
            retainedUntil: token.acceptedUntil,
            at: ClaimInstant(
                wallMicroseconds: state.loop.wallMicroseconds, monotonic: state.loop.now))
        if needsToken {
            let input = self.input
            claim.token.append(input.pinnedBytes.slice(tokenRange))
            claim.project = serving.projects[token.project].number
        }
        return claim
    }

    private func claimKey(of token: VerifiedToken) -> ClaimKey {
        let issuer = serving.projects[token.project].issuer
        if let id = token.tokenID { return ClaimKey(issuer: issuer, tokenID: id) }
        let input = self.input
        let bytes = input.pinnedBytes.slice(tokenRange)
        // The signature is left out: whoever finds a second one for the same bytes has no second
        // token.
        var end = bytes.count
        while end > 0 && bytes[end - 1] != UInt8(ascii: ".") { end -= 1 }
        return ClaimKey(issuer: issuer, signedBytes: bytes.extracting(first: max(0, end - 1)))
    }

    private var tokenRange: ByteRange { head.fields.first(.appCheckToken)?.value ?? .empty }

    private func note(_ outcome: ClaimOutcome) -> Verdict {
        record.claim = ClaimResult(outcome)
        switch outcome {
        case .claimed: return .verified
        case .reused: return .reused
        case .predates, .full: return .unavailable(.replayStore)
        case .unavailable(let failure):
            record.claimFailure = failure
            return .unavailable(.replayStore)
        case .expired: return .invalid(.expired)
        case .refused: return .invalid(.signature)
        case .unsupported: return .notLimitedUse
        }
    }
}

extension RequestRecord {
    /// The token of the request was claimed, or nobody can say that it was not.
    fileprivate var mayBeSpent: Bool {
        switch claim {
        case .claimed, .predates, .reused: true
        case .unavailable: claimFailure == .timeout || claimFailure == .disconnected
        case .released, .expired, .full, .refused, .unsupported, nil: false
        }
    }
}
