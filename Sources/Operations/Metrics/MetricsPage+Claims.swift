internal import Proxy
internal import Replay

/// What the page says of spent tokens, and of the store that remembers them.
extension MetricsPage {
    /// Appends the families of replay protection. How many claims there are is 0 without a store,
    /// and has no sample where only somebody else could count them; the others that describe the
    /// store are there only while one is open, and only where they can be told.
    func appendClaims(_ store: ClaimStoreStatus?, to text: inout MetricsText) {
        text.family(
            "portcullis_replay_claims_total", .counter,
            "Claims of limited-use tokens by what became of them; a released one was claimed, too.")
        for result in ClaimResult.allCases {
            text.sample([("result", result.rawValue)], sum(loops) { $0.claims.total(result) })
        }
        text.family("portcullis_replay_entries", .gauge, "Claims that are remembered.")
        guard let store else { return text.sample([], 0) }
        let statistics = store.statistics
        if let entries = statistics.entries { text.sample([], UInt64(clamping: entries)) }
        append(
            "portcullis_replay_entries_limit", "Claims that may be remembered at most.",
            statistics.entryLimit, to: &text)
        append(
            "portcullis_replay_bytes", "Bytes of memory or disk that the claims take.",
            statistics.bytes, to: &text)
        append(
            "portcullis_replay_bytes_limit", "Bytes that the claims may take at most.",
            statistics.byteLimit, to: &text)
        text.family(
            "portcullis_replay_store_duration_seconds", .histogram,
            "From the claim of a token to the store's answer.")
        text.samples([("store", "\(store.name)")], sum(loops.map(\.claimDuration.totals)))
        guard let breaker = statistics.breaker else { return }
        text.family(
            "portcullis_replay_breaker_state", .gauge,
            "1 for the state that the circuit breaker of a remote store is in.")
        for state in BreakerState.allCases {
            text.sample([("state", state.rawValue)], state == breaker ? 1 : 0)
        }
    }

    private func append(
        _ name: String, _ help: String, _ value: Int?, to text: inout MetricsText
    ) {
        guard let value else { return }
        text.family(name, .gauge, help)
        text.sample([], UInt64(clamping: value))
    }
}
