internal import Configuration
internal import Replay

/// What could be found out about a token's use without using it.
enum ClaimInspection: Equatable {
    /// What the store would answer to a claim now.
    case answered(ClaimOutcome)
    /// The store could not be asked, as it could not from a proxy in the same place. In words.
    case failed(String)
    /// Only somebody else knows: whom to ask, or what to do, in words.
    case unknown(String)
}

/// Where `explain` looks whether a token was used.
protocol ClaimInspector {
    /// Looks a claim up in the store of a configuration. Claims nothing.
    func inspect(_ claim: Claim, in configuration: Configuration) -> ClaimInspection
}
