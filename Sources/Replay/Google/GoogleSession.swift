internal import HTTP
internal import Reactor

/// One loop's connections to Google.
final class GoogleSession: ClaimSession {
    private let context: GoogleContext
    private let loop: EventLoop
    private let pool: HTTPPool
    private let path: String

    init(_ context: GoogleContext, loop: EventLoop) {
        self.context = context
        self.loop = loop
        pool = HTTPPool(loop: loop, origin: context.origin, version: context.settings.version)
        var path = context.origin.url.target
        while path.hasSuffix("/") { path.removeLast() }
        self.path = path
    }

    func claim(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome
    {
        let admission = context.breaker.admit(at: loop.now)
        if admission == .refuse { return .unavailable(.breakerOpen) }
        guard let target = target(of: claim), let body = Self.body(of: claim) else {
            context.breaker.forfeited(admission)
            return .unavailable(.system)
        }
        let isPatient = context.patience.isGranted(until: deadline, at: loop.now)
        var isSecond = false
        while true {
            let token: AccessTokens.Token
            switch await context.tokens.token(on: loop, until: deadline) {
            case .success(let current): token = current
            case .failure(let refusal):
                // Where tokens come from is another service, which its keeper leaves alone by
                // itself.
                context.breaker.forfeited(admission)
                return .unavailable(refusal.failure)
            }
            var request = HTTPPostRequest(
                target, contentType: "application/json", body: body, deadline: deadline)
            request.fields = [("Authorization", "Bearer \(token.text)")]
            do throws(HTTPClientError) {
                let response = try await pool.post(request)
                // Whoever is not known has done nothing: the one answer after which it is safe to
                // ask again.
                if response.status == 401 && !isSecond
                    && context.tokens.refused(token, at: loop.now)
                {
                    isSecond = true
                    context.keeper.renew()
                    continue
                }
                return settle(GoogleAnswer(response), admission)
            } catch {
                return settle(error, admission, isPatient: isPatient)
            }
        }
    }

    /// Google has no way to take a claim back.
    func release(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async -> Bool {
        false
    }

    /// Google has no way to ask without claiming.
    func inspect(_ claim: Claim, waiter: Waiter, until deadline: MonotonicInstant) async
        -> ClaimOutcome?
    { nil }

    func warmUp(waiter: Waiter, until deadline: MonotonicInstant) async {
        _ = await context.tokens.token(on: loop, until: deadline)
        do throws(HTTPClientError) {
            try await pool.connect(until: deadline)
        } catch {
            sayUnreachable(error)
        }
    }

    func close() {
        pool.close()
    }

    // MARK: One call

    private func target(of claim: Claim) -> String? {
        let project = claim.project
        let isName = { (byte: UInt8) in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                UInt8(ascii: "-"), UInt8(ascii: ":"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard !project.isEmpty, project.utf8.allSatisfy(isName) else { return nil }
        return "\(path)/projects/\(project):verifyAppCheckToken"
    }

    /// The token was verified: it has only the characters of a compact JWS, none that JSON would
    /// have to escape.
    private static func body(of claim: Claim) -> [UInt8]? {
        let isPlain = { (byte: UInt8) in 0x21...0x7E ~= byte && byte != 0x22 && byte != 0x5C }
        guard !claim.token.isEmpty, claim.token.allSatisfy(isPlain) else { return nil }
        return Array("{\"appCheckToken\":\"".utf8) + claim.token + Array("\"}".utf8)
    }

    private func settle(
        _ answer: GoogleAnswer, _ admission: CircuitBreaker.Admission
    ) -> ClaimOutcome {
        if answer.isFailure {
            context.breaker.failed(admission, at: loop.now)
        } else {
            context.breaker.succeeded(admission)
        }
        guard let trouble = answer.trouble else {
            context.notices.recovered(.permission, "Google's replay protection accepts us again")
            context.notices.recovered(.service, "Google's replay protection answers again")
            return answer.outcome
        }
        context.notices.failed(
            trouble.subject, "Google's replay protection cannot be used",
            [
                ("source", context.origin.url.endpoint.description), ("reason", trouble.reason),
                ("hint", trouble.hint),
            ])
        return answer.outcome
    }

    private func settle(
        _ error: HTTPClientError, _ admission: CircuitBreaker.Admission, isPatient: Bool
    ) -> ClaimOutcome {
        let failure = StoreFailure(error)
        // Our own crowd, and our own hurry, say nothing about Google.
        if failure == .overloaded || (error.cause == .timedOut && !isPatient) {
            context.breaker.forfeited(admission)
        } else {
            context.breaker.failed(admission, at: loop.now)
        }
        sayUnreachable(error)
        return .unavailable(failure)
    }

    private func sayUnreachable(_ error: HTTPClientError) {
        context.notices.failed(
            .service, "Google's replay protection cannot be used",
            [
                ("source", context.origin.url.endpoint.description),
                ("reason", error.description),
                ("hint", "check this machine's way to it, and \"egress_proxy\" in google"),
            ])
    }
}
