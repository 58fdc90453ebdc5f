/// Why a store cannot be used at all: a mistake that somebody has to correct before it can.
public struct StoreOpenError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What is wrong, and with which file or address. Never a password or a key.
    public let message: String
    /// What to do about it.
    public let hint: String

    public init(_ message: String, hint: String) {
        self.message = message
        self.hint = hint
    }

    public var description: String { "\(message); \(hint)" }
}
