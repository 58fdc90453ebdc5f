/// What the header of a token must say before a key is looked for.
///
/// `jwk`, `jku`, `x5u` and `x5c` are not here: a token that brings its own key is judged by ours
/// (pitfall T2).
enum HeaderCheck: String {
    case algorithm
    case type
    case critical
    case keyID = "key_id"

    /// Which of several faults is told.
    static let inOrder: [HeaderCheck] = [.algorithm, .type, .critical, .keyID]

    /// Why the header does not meet the rule, or nil when it does.
    func fault(in header: JSONDocument) -> InvalidReason? {
        switch self {
        case .algorithm:
            header.string("alg", equals: "RS256") ? nil : .algorithm
        case .type:
            header.string("typ", equals: "JWT") ? nil : .malformed
        case .critical:
            // It names extensions that must be understood (RFC 7515, section 4.1.11), and we know
            // none.
            header.member("crit") == nil ? nil : .malformed
        case .keyID:
            // Never "try every key": a token that names none is none of Google's (pitfall T3).
            Self.keyID(of: header, isValid: KeyID.isValid) ? nil : .malformed
        }
    }

    /// Expected against got.
    func detail(of header: JSONDocument) -> String {
        switch self {
        case .algorithm: "expected \"RS256\", got \(header.display("alg"))"
        case .type: "expected \"JWT\", got \(header.display("typ"))"
        case .critical:
            header.member("crit") == nil ? "no critical extensions" : "`crit` is not supported"
        case .keyID:
            "expected 1 to 128 characters of a key id, got \(header.display("kid"))"
        }
    }

    private static func keyID(
        of header: JSONDocument, isValid: (Span<UInt8>) -> Bool
    ) -> Bool {
        guard let member = header.member("kid"), let keyID = header.string(member) else {
            return false
        }
        return isValid(keyID)
    }
}
