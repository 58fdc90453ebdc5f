internal import Attestation
internal import HTTP
internal import Policy
internal import Reactor

/// How often a client may ask: the limit of the route, and the one on bad tokens
/// (docs/decisions/0072-rate-limits.md).
extension Exchange {
    // MARK: Requests

    /// Charges the request to its client, where the route has a limit.
    ///
    /// - Returns: whether it is beyond the limit, and the limit is enforced.
    @inline(never)
    func isBeyondLimit(_ route: ServedRoute) -> Bool {
        // It costs no backend anything, and a browser that does not get it says nothing of why.
        if route.answersPreflights && head.isPreflight { return false }
        guard let limit = serving.details(of: route).limit else { return false }
        let wait = limit.table.charge(
            limitedClient(limit), at: state.loop.now.nanoseconds,
            neighbourhood: { limit.table.hash.neighbourhood(clientAddress) })
        guard let wait else { return false }
        switch limit.limit.mode {
        case .monitor:
            record.limit.insert(.wouldReject)
            return false
        case .enforce:
            record.limit.insert(.rejected)
            record.failure = .rateLimited
            limitWait = wait
            return true
        }
    }

    /// Who is charged. A request without what the limit goes by counts for its network: leaving out
    /// a field is no way around a limit.
    private func limitedClient(_ limit: RouteLimit) -> UInt64 {
        let hash = limit.table.hash
        switch limit.limit.key {
        case .clientNetwork: break
        case .app:
            if let token = record.token { return hash.app(token.appID, project: token.project) }
            record.limit.insert(.keyMissing)
        case .field(let name):
            let input = self.input
            let bytes = input.pinnedBytes
            if let line = head.fields.line(named: name, in: bytes), !line.value.isEmpty {
                return hash.value(bytes.slice(line.value))
            }
            record.limit.insert(.keyMissing)
        }
        if clientAddress == nil { record.limit.insert(.keyMissing) }
        return hash.network(clientAddress)
    }

    // MARK: Verifications

    /// Whether a signature may be computed for the client's network. Those who come by a local
    /// socket cannot be told apart, and must not be taken for one.
    func admitsVerification() -> Bool {
        guard let table = serving.limits.verifications, let address = clientAddress else {
            return true
        }
        let wait = table.inspect(
            table.hash.network(address), at: state.loop.now.nanoseconds,
            neighbourhood: { table.hash.neighbourhood(address) })
        guard let wait else { return true }
        limitWait = wait
        return false
    }

    /// Charges the client's network for a signature that was computed in vain.
    func chargeVerification() {
        guard let table = serving.limits.verifications, let address = clientAddress else { return }
        _ = table.charge(
            table.hash.network(address), at: state.loop.now.nanoseconds,
            neighbourhood: { table.hash.neighbourhood(address) })
    }

    // MARK: The answer

    /// The fields of an answer of status 429 that say when to come back: `Retry-After` and the
    /// RateLimit fields (draft-ietf-httpapi-ratelimit-headers-10), or the pushback of gRPC (gRFC
    /// A6).
    func writeLimit(isGRPC: Bool) {
        if isGRPC {
            output.appendField(
                "grpc-retry-pushback-ms",
                decimal: UInt64(min(rounded(to: 1_000_000), Int64(Int32.max))))
            return
        }
        let seconds = UInt64(rounded(to: 1_000_000_000))
        output.appendField("Retry-After", decimal: seconds)
        guard record.limit.contains(.rejected), let index = record.route,
            let limit = serving.details(of: serving.routes[index]).limit
        else { return }
        let policy = limit.policyField
        output.appendField("RateLimit-Policy", policy.span)
        output.append("RateLimit: ")
        output.append(limit.exhaustedField)
        output.append(decimal: seconds)
        output.appendLineEnd()
    }

    /// `limitWait` in units of so many nanoseconds; rounded up, and at least one.
    private func rounded(to unit: Int64) -> Int64 {
        let (whole, rest) = max(limitWait, 1).quotientAndRemainder(dividingBy: unit)
        return whole + (rest > 0 ? 1 : 0)
    }
}
