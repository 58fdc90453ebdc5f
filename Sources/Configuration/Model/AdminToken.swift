internal import Attestation

/// The bearer token that changes through the admin listener need. Only its digest is kept, so that
/// nothing that shows a configuration can show it, and comparing takes the same time whatever comes.
public struct AdminToken: Sendable, Equatable, CustomStringConvertible {
    /// As long as nobody guesses it at any rate at which a listener answers.
    static let shortest = 16
    static let longest = 512

    private let digest: SHA256Digest

    /// - Parameter text: 16 to 512 visible characters of ASCII; a bearer token (RFC 6750, section
    ///   2.1) can say no other.
    /// - Returns: nil for other text.
    public init?(_ text: String) {
        guard Self.whatIsWrong(with: text) == nil else { return nil }
        digest = SHA256.hash(Array(text.utf8).span)
    }

    /// Whether these bytes are the token.
    public func matches(_ bytes: [UInt8]) -> Bool { SHA256.hash(bytes.span) == digest }

    public var description: String { "…" }

    /// Why a text cannot be a token; completes "names a file that …".
    static func whatIsWrong(with text: String) -> String? {
        let bytes = text.utf8
        if bytes.isEmpty { return "is empty" }
        if !bytes.allSatisfy({ 0x21...0x7E ~= $0 }) {
            return "holds something else than one word of printable ASCII"
        }
        if bytes.count < shortest { return "holds fewer than \(shortest) characters" }
        return bytes.count > longest ? "holds more than \(longest) characters" : nil
    }
}
