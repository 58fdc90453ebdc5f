/// What is wrong with a certificate, a key, or what belongs to them: which file, what, and what to
/// do about it. As a warning it does not keep the files from being used.
public struct CertificateError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A word for metrics and logs.
    public enum Kind: String, Sendable, CaseIterable {
        /// There is no such file.
        case missing
        /// The file is closed to us, or no file.
        case unreadable
        /// It is not in the form that it has to be in.
        case format
        case expired
        case notYetValid = "not_yet_valid"
        /// The key belongs to another certificate.
        case keyMismatch = "key_mismatch"
        /// The certificates of the file do not lead from one to the next.
        case chain
        /// The key is encrypted.
        case password
        /// Others than the owner may read the key.
        case permissions
        /// A key or signature that clients do not accept any more.
        case weak
        /// The certificate is for no name.
        case names
        /// The certificate is not for what it is used for.
        case purpose
        /// The OCSP response is of no use.
        case ocsp
    }

    /// What is wrong, for code.
    public let kind: Kind
    /// The file that has to change.
    public let file: String
    /// What is wrong, as the end of a sentence about the file.
    public let reason: String
    /// What to do.
    public let remedy: String

    init(_ kind: Kind, _ file: String, _ reason: String, remedy: String) {
        self.kind = kind
        self.file = file
        self.reason = reason
        self.remedy = remedy
    }

    public var description: String { "\(file): \(reason); \(remedy)" }
}

/// Everything that is wrong with the files of one listener or upstream.
public struct CertificateErrors: Error, Sendable, Equatable, CustomStringConvertible {
    /// At least one, in the order of the configuration.
    public let all: [CertificateError]

    init(_ all: [CertificateError]) {
        self.all = all
    }

    public var description: String { all.map(\.description).joined(separator: "\n") }
}
