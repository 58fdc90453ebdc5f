internal import Attestation
internal import Configuration
internal import HTTP
internal import Policy
internal import Reactor

/// What is known about the request's token.
extension Exchange {
    /// Looks at the token in the order that docs/decisions/0001 fixes: form, signature, claims,
    /// then the route's apps.
    func judge(_ client: ClientConnection, _ route: ServedRoute) async -> Verdict {
        if route.mode == .off || head.isPreflight { return .exempt }
        if isTokenInURL { return .invalid(.inURL) }
        switch locateToken(route) {
        case 0: return .missing(missingReason(route))
        case 1: break
        default: return .invalid(.duplicate)
        }
        if let verified = cached(tokenRange) {
            note(verified)
            return route.acceptsEveryApp
                ? .verified : serving.details(of: route).route.verdict(of: verified)
        }
        let before = MonotonicInstant.now
        var verdict = examine(tokenRange)
        if case .unknownKey(let project) = verdict {
            let attempts = state.keys.attempts(project)
            // A monitored request is not held up for a better verdict (pitfall M1).
            if state.keys.refetch(project, named: serving.projects[project].name),
                route.mode == .enforce, isInShare(route),
                await newKeysCame(client, project, since: attempts)
            {
                verdict = examine(tokenRange)
            }
        }
        record.verifyMicroseconds = MonotonicInstant.now.microseconds(since: before)
        switch verdict {
        case .verified(let verified):
            note(verified)
            // Peers fall asleep while signatures are checked, and waking one costs us as much as a
            // third of a signature. What else is ready is checked first, and then all is sent.
            await Task.yield()
        case .debugSecret: record.isDebugSecret = true
        case .attestationFailed, .invalid, .keysUnavailable, .unknownKey, .notAdmitted: break
        }
        return serving.details(of: route).route.verdict(of: verdict)
    }

    /// The request's token, when it has just one; in the pinned bytes of `input`.
    var tokenRange: ByteRange {
        protocolToken ?? head.fields.first(.appCheckToken)?.value ?? .empty
    }

    /// Finds the request's token.
    ///
    /// - Returns: how many there are; one is in `tokenRange`.
    private func locateToken(_ route: ServedRoute) -> Int {
        let count = head.fields.count(of: .appCheckToken)
        guard route.takesProtocolTokens, head.wantsWebSocket else { return count }
        return count + locateProtocolTokens()
    }

    private var isTokenInURL: Bool {
        if !head.target.hasQuery { return false }
        let input = self.input
        let query = input.pinnedBytes.slice(head.target.query)
        return URLTokenScanner.carriesToken(query) { [verifier = serving.verifier] value in
            verifier.isTokenOfServedIssuer(value)
        }
    }

    private func cached(_ value: ByteRange) -> VerifiedToken? {
        let input = self.input
        let verified = state.tokens.lookup(
            input.pinnedBytes.slice(value), now: state.loop.wallMicroseconds / 1_000_000,
            keys: usableKeys)
        record.isCachedVerdict = verified != nil
        return verified
    }

    private func examine(_ value: ByteRange) -> TokenVerdict {
        let input = self.input
        let token = input.pinnedBytes.slice(value)
        var isAdmitted = false
        let verdict = serving.verifier.verify(
            token, now: state.loop.wallMicroseconds / 1_000_000, keys: usableKeys,
            admits: {
                isAdmitted = admitsVerification()
                return isAdmitted
            })
        if case .verified(let verified) = verdict {
            state.tokens.insert(token, verified, now: state.loop.wallMicroseconds / 1_000_000)
        } else if isAdmitted {
            // A token that is genuine and expired costs as much as a forged one, each time.
            chargeVerification()
        }
        return verdict
    }

    private func usableKeys(_ project: Int) -> KeySet? {
        state.keys.snapshot.usableKeys(ofProject: project, at: state.loop.now)
    }

    /// Remembers what the record and the upstream are told of a token, whatever the route makes of
    /// it.
    private func note(_ token: VerifiedToken) {
        record.token = token
        if let app = token.app { record.app = AppIndex(project: token.project, app: app) }
    }

    /// Waits until the refetch of a project's keys has ended; false when that takes too long, or
    /// when the keys that came are those of another configuration.
    private func newKeysCame(_ client: ClientConnection, _ project: Int, since attempts: UInt64)
        async -> Bool
    {
        let deadline = state.loop.now.advanced(by: LoopKeys.patience)
        while state.keys.attempts(project) == attempts {
            guard state.keys.awaitNext(client.waiter) else { return false }
            guard await client.waitUnlessGone(until: deadline) == .ready,
                state.serving === serving
            else { return false }
        }
        return true
    }

    // MARK: A request without a token

    private func missingReason(_ route: ServedRoute) -> MissingReason {
        if !serving.hasFingerprints { return .unknownOrigin }
        let input = self.input
        let bytes = input.pinnedBytes
        let agent = head.fields.first(.userAgent)?.value ?? .empty
        return serving.details(of: route).route.missingReason(
            serving.fingerprints,
            hasField: { head.fields.line(named: $0, in: bytes) != nil },
            userAgent: bytes.slice(agent))
    }

    // MARK: The share

    /// Whether this client is enforced on the route; a client without the sticky key is not, and is
    /// counted.
    func isInShare(_ route: ServedRoute) -> Bool {
        let details = serving.details(of: route)
        guard let share = details.share else { return true }
        fillShareKey(details.route.stickyBy)
        record.isShareKeyMissing = shareKey.isEmpty
        let key = shareKey
        return !key.isEmpty && share.isInside(key.span)
    }

    /// Makes `shareKey` what the client is; empty where it has no such key.
    func fillShareKey(_ key: StickyKey) {
        shareKey.removeAll(keepingCapacity: true)
        switch key {
        case .clientIP: clientAddress?.appendShareKey(to: &shareKey)
        case .field(let name):
            let input = self.input
            let bytes = input.pinnedBytes
            if let line = head.fields.line(named: name, in: bytes) {
                shareKey.append(bytes.slice(line.value))
            }
        case .app:
            if let appID = record.token?.appID { shareKey.append(contentsOf: appID.utf8) }
        }
    }
}
