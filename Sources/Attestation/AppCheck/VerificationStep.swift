/// One step of a verification with its outcome, for people: what `explain` prints.
public struct VerificationStep: Sendable, Equatable {
    /// How a step ended, and why; the text never holds the token.
    public enum Outcome: Sendable, Equatable {
        case holds(String)
        case fails(String)
        /// The step was not possible after an earlier failure.
        case skipped(String)
    }

    /// What is checked, as one word: `form`, `algorithm`, `issuer`, `signature`, `expiry`…
    public let name: String
    /// How it went.
    public let outcome: Outcome

    public init(name: String, outcome: Outcome) {
        self.name = name
        self.outcome = outcome
    }

    init(name: String, holds: Bool, _ detail: String) {
        self.init(name: name, outcome: holds ? .holds(detail) : .fails(detail))
    }
}
