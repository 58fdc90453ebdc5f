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

/// One limited-use token, one request (docs/decisions/0054-when-a-token-is-spent.md).
extension Exchange {
    /// Whether the verified token lives too long for one that is used once.
    var hasSessionToken: Bool {
        record.token.map { !$0.isLimitedUse(upTo: serving.limitedUseLifetime) } ?? false
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

    /// The answer to a rejection: one for which the store is the reason says what became of the
    /// token.
    func prepared(for code: RejectionCode) -> PreparedAnswer {
        guard claims.isEnforced, code == .verificationUnavailable else { return code.prepared }
        return record.mayBeSpent ? .unavailableSpent : .unavailableUnspent
    }

    private func makeClaim(_ token: VerifiedToken, needsToken: Bool) -> Claim {
        let input = self.input
        let text = input.pinnedBytes.slice(tokenRange)
        var claim = Claim(
            of: token, issuer: serving.projects[token.project].issuer, text: text,
            at: ClaimInstant(
                wallMicroseconds: state.loop.wallMicroseconds, monotonic: state.loop.now))
        if needsToken {
            claim.token.append(text)
            claim.project = serving.projects[token.project].number
        }
        return claim
    }

    private func note(_ outcome: ClaimOutcome) -> Verdict {
        record.claim = ClaimResult(outcome)
        if case .unavailable(let failure) = outcome { record.claimFailure = failure }
        return Verdict(outcome)
    }
}

extension RequestRecord {
    /// The token of the request was claimed, or nobody can say that it was not.
    fileprivate var mayBeSpent: Bool {
        switch claim {
        case .claimed, .predates, .reused: true
        case .unavailable:
            switch claimFailure {
            // An answer that makes no sense says nothing of what was done before it.
            case .timeout, .disconnected, .protocolError: true
            case .unreachable, .tls, .denied, .evicting, .breakerOpen, .overloaded, .system, nil:
                false
            }
        case .released, .expired, .full, .refused, .unsupported, nil: false
        }
    }
}
