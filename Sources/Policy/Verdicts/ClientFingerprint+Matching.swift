extension Route {
    /// Why a request without a token has none: `outdatedClient` when it bears a fingerprint of any
    /// project that the route serves. For metrics only: fingerprints are forged at will (pitfall
    /// H9).
    ///
    /// - Parameters:
    ///   - fingerprints: Of each project, by its index in the configuration.
    ///   - hasField: Whether the request has a field of this name (lower case).
    ///   - userAgent: Value of User-Agent; empty when there is none.
    public func missingReason(
        _ fingerprints: [[ClientFingerprint]], hasField: (String) -> Bool, userAgent: Span<UInt8>
    ) -> MissingReason {
        for project in fingerprints.indices where projects?.contains(project) ?? true {
            for fingerprint in fingerprints[project]
            where fingerprint.matches(hasField: hasField, userAgent: userAgent) {
                return .outdatedClient
            }
        }
        return .unknownOrigin
    }
}

extension ClientFingerprint {
    /// User-Agents longer than this match no pattern; it bounds what a request can cost.
    public static let longestUserAgent = 1_024

    /// Whether a request bears this fingerprint. Does not allocate.
    public func matches(hasField: (String) -> Bool, userAgent: Span<UInt8>) -> Bool {
        switch self {
        case .fieldPresent(let name): hasField(name)
        case .userAgent(let pattern):
            !userAgent.isEmpty && userAgent.count <= Self.longestUserAgent
                && Self.matches(pattern.utf8.span, userAgent)
        }
    }

    /// Whether all of `text` matches a pattern, in which `*` stands for any run of bytes; case
    /// matters.
    ///
    /// After a `*` the first place where the following literal fits is as good as any later one, so
    /// a mismatch goes back to the last `*` alone: at most pattern × text steps, never more.
    static func matches(_ pattern: Span<UInt8>, _ text: Span<UInt8>) -> Bool {
        var (inPattern, inText) = (0, 0)
        /// Behind the last star, and where the text that it does not swallow begins.
        var star: (pattern: Int, text: Int)?
        while inText < text.count {
            if inPattern < pattern.count, pattern[inPattern] == UInt8(ascii: "*") {
                inPattern += 1
                star = (inPattern, inText)
                if inPattern == pattern.count { return true }
            } else if inPattern < pattern.count, pattern[inPattern] == text[inText] {
                inPattern += 1
                inText += 1
            } else if let last = star {
                star = (last.pattern, last.text + 1)
                (inPattern, inText) = (last.pattern, last.text + 1)
            } else {
                return false
            }
        }
        while inPattern < pattern.count, pattern[inPattern] == UInt8(ascii: "*") { inPattern += 1 }
        return inPattern == pattern.count
    }
}
