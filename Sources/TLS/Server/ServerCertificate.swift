internal import COpenSSL
internal import Reactor

/// A certificate with its key, read from files and found good.
public final class ServerCertificate: Sendable {
    /// Where it comes from.
    public let files: CertificateFiles
    /// The host names (lower case, "*." for a wildcard) and addresses that it is for.
    public let names: [String]
    /// First second of its life, since 1970.
    public let notBefore: Int64
    /// Last second of its life, since 1970.
    public let notAfter: Int64
    /// The last day of its life, such as "2026-11-30".
    public let lastDay: String
    /// The kind and size of its key, such as "EC 256".
    public let keySummary: String
    /// Whoever signed it.
    public let issuer: String
    /// What is not right but does no harm yet.
    public let warnings: [CertificateError]

    /// The certificates as they are sent.
    let chain: CertificateChain
    /// The key of the first.
    let key: PrivateKey
    /// The OCSP response that goes with it.
    let staple: OCSPStaple?

    /// Reads and checks the files. A stale OCSP response is only a warning, because it is not
    /// handed out, and clients can do without.
    ///
    /// - Parameter now: Seconds since 1970.
    public init(_ files: CertificateFiles, now: Int64) throws(CertificateError) {
        self.files = files
        chain = try CertificateChain(try IdentityFile(files.certificate))
        let keyFile = try IdentityFile(files.key)
        key = try PrivateKey.read(keyFile)
        try chain.check(key, in: files.key)
        try chain.checkOrder()
        try chain.checkValidity(at: now)
        try chain.checkStrength()
        try chain.checkPurpose()
        let leaf = chain.leaf.pointer
        names = chain.names.map { $0.lowercased() }
        (notBefore, notAfter) = Certificate.validitySeconds(of: leaf)
        lastDay = Certificate.validity(of: leaf).to
        issuer = Certificate.issuer(of: leaf)
        keySummary = key.summary
        var warnings: [CertificateError] = []
        if keyFile.permissions & 0o077 != 0 { warnings.append(Self.openKey(keyFile)) }
        if chain.isProbablyIncomplete { warnings.append(Self.loneLeaf(files.certificate)) }
        if let path = files.ocsp {
            let said = try OCSPStaple(
                try IdentityFile(path), for: chain.leaf, in: files.certificate)
            if !said.isFresh(at: now) { warnings.append(Self.staleStaple(path)) }
            staple = said
        } else {
            staple = nil
        }
        self.warnings = warnings
    }

    private static func openKey(_ file: IdentityFile) -> CertificateError {
        let who = file.permissions & 0o004 != 0 ? "every user" : "the file's group"
        return CertificateError(
            .permissions, file.path, "the private key is open to \(who) of this machine",
            remedy: "chmod 600, and make this process's user its owner")
    }

    private static func staleStaple(_ path: String) -> CertificateError {
        CertificateError(
            .ocsp, path, "is stale, so no OCSP response is stapled",
            remedy: "fetch it again, at least once a day")
    }

    private static func loneLeaf(_ path: String) -> CertificateError {
        CertificateError(
            .chain, path,
            "its chain is probably incomplete: it holds only the server's certificate",
            remedy:
                "append the intermediate certificates of the issuer, or some clients will refuse it"
        )
    }
}
