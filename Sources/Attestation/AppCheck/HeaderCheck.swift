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
    func fault(in header: borrowing TokenHeader) -> InvalidReason? {
        switch self {
        case .algorithm:
            Self.isString(header.algorithm, "RS256", of: header) ? nil : .algorithm
        case .type:
            Self.isString(header.type, "JWT", of: header) ? nil : .malformed
        case .critical:
            // It names extensions that must be understood (RFC 7515, section 4.1.11), and we know
            // none.
            header.critical == nil ? nil : .malformed
        case .keyID:
            // Never "try every key": a token that names none is none of Google's (pitfall T3).
            Self.hasKeyID(header) ? nil : .malformed
        }
    }

    /// Expected against got.
    func detail(of header: borrowing TokenHeader) -> String {
        switch self {
        case .algorithm: "expected \"RS256\", got \(header.document.display("alg"))"
        case .type: "expected \"JWT\", got \(header.document.display("typ"))"
        case .critical:
            header.critical == nil ? "no critical extensions" : "`crit` is not supported"
        case .keyID:
            "expected 1 to 128 characters of a key id, got \(header.document.display("kid"))"
        }
    }

    private static func isString(
        _ member: Int?, _ value: StaticString, of header: borrowing TokenHeader
    ) -> Bool {
        guard let member, let text = header.document.string(member) else { return false }
        return text.equals(value)
    }

    private static func hasKeyID(_ header: borrowing TokenHeader) -> Bool {
        guard let member = header.keyID, let keyID = header.document.string(member) else {
            return false
        }
        return KeyID.isValid(keyID)
    }
}
