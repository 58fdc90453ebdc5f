internal import COpenSSL
internal import Glibc

/// What went wrong in a mint; a test can only fail on it.
public struct MintError: Error {
    let step: String
}

/// A certificate authority for one test.
public final class CertificateMint {
    /// Files that a TLS server needs.
    public struct Identity: Sendable {
        public let certificate: String
        public let key: String
    }

    /// The kind of an issued key.
    public enum KeyKind: Sendable {
        case p256
        case rsa(bits: UInt32)
    }

    private static let day = 86_400

    /// The PEM file that a client has to trust.
    public let file: String
    private let folder: TemporaryFolder
    private let name: String
    // Safe: owned by this object alone, freed in `deinit`.
    private let key: OpaquePointer
    private let certificate: OpaquePointer
    /// Who signed this authority's certificate; nil for a root.
    private let parent: CertificateMint?
    private var count = 0

    /// - Parameter name: Common name of the authority.
    /// - Parameter parent: Signs it, which makes it an intermediate one.
    public init(
        name: String = "Test CA", signedBy parent: CertificateMint? = nil,
        in folder: TemporaryFolder
    ) throws(MintError) {
        self.name = name
        self.folder = folder
        self.parent = parent
        key = try Self.makeKey(.p256)
        certificate = try Self.make(
            subject: name, issuer: parent?.name ?? name, key: key, signer: parent?.key ?? key,
            days: -1...10, extensions: [(NID_basic_constraints, "critical,CA:TRUE")])
        file = folder.path(of: "\(name).pem")
        try Self.write(file) { PEM_write_bio_X509($0, certificate) }
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
    }

    /// Makes a key and a certificate for it.
    ///
    /// - Parameter names: As OpenSSL writes alternative names: "DNS:localhost", "IP:127.0.0.1".
    /// - Parameter days: When the certificate is valid, in days from now.
    /// - Parameter password: Encrypts the key file.
    /// - Parameter usage: extendedKeyUsage, such as "clientAuth".
    public func issue(
        _ names: [String], days: ClosedRange<Int> = -1...5, key kind: KeyKind = .p256,
        password: String? = nil, usage: String? = nil
    ) throws(MintError) -> Identity {
        count += 1
        let identity = Identity(
            certificate: folder.path(of: "\(name)-\(count).pem"),
            key: folder.path(of: "\(name)-\(count).key"))
        let leafKey = try Self.makeKey(kind)
        defer { EVP_PKEY_free(leafKey) }
        var extensions =
            names.isEmpty ? [] : [(NID_subject_alt_name, names.joined(separator: ","))]
        if let usage { extensions.append((NID_ext_key_usage, usage)) }
        let leaf = try Self.make(
            subject: "server \(count)", issuer: name, key: leafKey, signer: key, days: days,
            extensions: extensions)
        defer { X509_free(leaf) }
        let intermediates = self.intermediates
        try Self.write(identity.certificate) { file in
            ([leaf] + intermediates).allSatisfy { PEM_write_bio_X509(file, $0) == 1 } ? 1 : 0
        }
        try Self.write(identity.key) {
            PEM_write_bio_PrivateKey(
                $0, leafKey, password == nil ? nil : EVP_aes_256_cbc(), nil, 0, nil,
                password.map { strdup($0) })
        }
        chmod(identity.key, 0o600)
        return identity
    }

    /// This authority's certificate and those that lead to the root, without the root.
    private var intermediates: [OpaquePointer] {
        guard let parent else { return [] }
        return [certificate] + parent.intermediates
    }

    private static func makeKey(_ kind: KeyKind) throws(MintError) -> OpaquePointer {
        if case .rsa(let bits) = kind {
            guard let key = COpenSSL_EVP_RSA_gen(bits) else { throw MintError(step: "key") }
            return key
        }
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1,
            EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
            EVP_PKEY_keygen(context, &key) == 1, let key
        else { throw MintError(step: "key") }
        return key
    }

    private static func make(
        subject: String, issuer: String, key: OpaquePointer, signer: OpaquePointer,
        days: ClosedRange<Int>, extensions: [(Int32, String)]
    ) throws(MintError) -> OpaquePointer {
        guard let certificate = X509_new() else { throw MintError(step: "X509_new") }
        X509_set_version(certificate, 2)
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), .random(in: 1...(1 << 60)))
        X509_gmtime_adj(X509_getm_notBefore(certificate), days.lowerBound * day)
        X509_gmtime_adj(X509_getm_notAfter(certificate), days.upperBound * day)
        setName(X509_get_subject_name(certificate), subject)
        setName(X509_get_issuer_name(certificate), issuer)
        X509_set_pubkey(certificate, key)
        for (kind, value) in extensions {
            guard let item = X509V3_EXT_conf_nid(nil, nil, kind, value) else {
                X509_free(certificate)
                throw MintError(step: value)
            }
            X509_add_ext(certificate, item, -1)
            X509_EXTENSION_free(item)
        }
        if X509_sign(certificate, signer, EVP_sha256()) == 0 {
            X509_free(certificate)
            throw MintError(step: "sign")
        }
        return certificate
    }

    private static func setName(_ name: OpaquePointer?, _ text: String) {
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0)
    }

    private static func write(
        _ path: String, _ body: (OpaquePointer?) -> Int32
    ) throws(MintError) {
        let file = BIO_new_file(path, "w")
        defer { BIO_free(file) }
        if file == nil || body(file) != 1 { throw MintError(step: path) }
    }
}
