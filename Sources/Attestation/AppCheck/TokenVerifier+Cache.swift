extension TokenVerifier {
    /// Judges one token, and remembers it while it is verified.
    ///
    /// - Parameter cache: The event loop's own; emptied whenever another verifier takes this one's
    ///   place.
    public func verify(
        _ token: Span<UInt8>, now: Int64, cache: TokenCache, keys: (Int) -> KeySet?
    ) -> TokenVerdict {
        if let verified = cache.lookup(token, now: now, keys: keys) { return .verified(verified) }
        let verdict = verify(token, now: now, keys: keys)
        if case .verified(let verified) = verdict { cache.insert(token, verified, now: now) }
        return verdict
    }
}
