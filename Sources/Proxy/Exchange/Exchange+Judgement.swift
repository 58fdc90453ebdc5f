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
        if route.mode == .off || isPreflight { return .exempt }
        if isTokenInURL { return .invalid(.inURL) }
        switch head.fields.count(of: .appCheckToken) {
        case 0: return .missing(missingReason(route.route))
        case 1: break
        default: return .invalid(.duplicate)
        }
        guard let line = head.fields.first(.appCheckToken) else { return .missing(.unknownOrigin) }
        if let verified = cached(line.value) { return judge(verified, route.route) }
        let before = MonotonicInstant.now
        var verdict = examine(line.value)
        if case .unknownKey(let project) = verdict {
            let attempts = state.attempts(project)
            // A monitored request is not held up for a better verdict (pitfall M1).
            if state.refetchKeys(project), route.mode == .enforce, isInShare(route),
                await newKeysCame(client, project, since: attempts)
            {
                verdict = examine(line.value)
            }
        }
        record.verifyMicroseconds = MonotonicInstant.now.microseconds(since: before)
        return judge(verdict, route.route)
    }

    /// CORS preflight (the Fetch standard): a browser sends it without the token, and it must not
    /// be answered with 401.
    var isPreflight: Bool {
        head.method == .options && head.fields.contains(.origin)
            && head.fields.contains(.accessControlRequestMethod)
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
        let verdict = serving.verifier.verify(
            token, now: state.loop.wallMicroseconds / 1_000_000, keys: usableKeys)
        if case .verified(let verified) = verdict {
            state.tokens.insert(token, verified, now: state.loop.wallMicroseconds / 1_000_000)
        }
        return verdict
    }

    private func usableKeys(_ project: Int) -> KeySet? {
        state.keys.usableKeys(ofProject: project, at: state.loop.now)
    }

    private func judge(_ verdict: TokenVerdict, _ route: Route) -> Verdict {
        switch verdict {
        case .verified(let verified): return judge(verified, route)
        case .attestationFailed: return .attestationFailed
        case .invalid(let reason): return .invalid(reason)
        case .debugSecret:
            record.isDebugSecret = true
            return .invalid(.malformed)
        case .keysUnavailable: return .unavailable(.keys)
        case .unknownKey: return .invalid(.unknownKey)
        }
    }

    /// Whether this route accepts the app that the token was issued for.
    private func judge(_ verified: VerifiedToken, _ route: Route) -> Verdict {
        record.hasApp = true
        record.token = verified
        if let app = verified.app { record.app = AppIndex(project: verified.project, app: app) }
        if let projects = route.projects, !projects.contains(verified.project) {
            return .appNotAllowed
        }
        if let apps = route.apps {
            guard let app = record.app, apps.contains(app) else { return .appNotAllowed }
        }
        return .verified
    }

    /// Waits until the refetch of a project's keys has ended; false when that takes too long.
    private func newKeysCame(_ client: ClientConnection, _ project: Int, since attempts: UInt64)
        async -> Bool
    {
        let deadline = state.loop.now.advanced(by: LoopState.keyPatience)
        while state.attempts(project) == attempts {
            guard state.awaitKeys(client.waiter) else { return false }
            if await client.waiter.wait(until: deadline) == .timedOut { return false }
            if client.socket.isPeerClosed { return false }
        }
        return true
    }

    // MARK: A request without a token

    private func missingReason(_ route: Route) -> MissingReason {
        let input = self.input
        let bytes = input.pinnedBytes
        let agent = head.fields.first(.userAgent)?.value ?? .empty
        return route.missingReason(
            serving.fingerprints,
            hasField: { head.fields.line(named: $0, in: bytes) != nil },
            userAgent: bytes.slice(agent))
    }

    // MARK: The share

    /// Whether this client is enforced on the route; a client without the sticky key is not, and is
    /// counted.
    func isInShare(_ route: ServedRoute) -> Bool {
        guard let share = route.share else { return true }
        fillShareKey(route.route.stickyBy)
        record.isShareKeyMissing = shareKey.isEmpty
        let key = shareKey
        return !key.isEmpty && share.isInside(key.span)
    }

    private func fillShareKey(_ key: StickyKey) {
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
