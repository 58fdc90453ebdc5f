internal import COpenSSL

/// The certificates of one file, checked as far as they can be without knowing whom clients trust.
struct CertificateChain {
    /// The one that is for the server.
    let leaf: Certificate
    /// Those that lead to the root, in order.
    let issuers: [Certificate]
    /// The file.
    let path: String

    private var all: [Certificate] { [leaf] + issuers }

    /// Parses a file.
    init(_ file: IdentityFile) throws(CertificateError) {
        path = file.path
        let certificates = try Certificate.read(file)
        guard let leaf = certificates.first else { throw Self.noCertificate(file) }
        self.leaf = leaf
        issuers = Array(certificates.dropFirst())
    }

    private static func noCertificate(_ file: IdentityFile) -> CertificateError {
        if file.contains("PRIVATE KEY") {
            return CertificateError(
                .format, file.path, "holds a private key where a certificate should be",
                remedy: "\"certificate\" needs the file of the certificate")
        }
        // A DER certificate is an ASN.1 SEQUENCE.
        let isDER = file.bytes.first == 0x30
        return CertificateError(
            .format, file.path, "there is no certificate in PEM format in it",
            remedy: isDER
                ? "convert it: openssl x509 -inform DER -in CERTIFICATE -out NEW"
                : "it must hold \"-----BEGIN CERTIFICATE-----\"")
    }

    /// Whether the key is that of the first certificate.
    func check(_ key: PrivateKey, in keyPath: String) throws(CertificateError) {
        if isKey(key, of: leaf) { return }
        if let owner = all.firstIndex(where: { isKey(key, of: $0) }) {
            throw CertificateError(
                .chain, path,
                "the server's certificate is number \(owner + 1) in it, not the first",
                remedy:
                    "put the certificate to which \(keyPath) belongs first, and behind it those "
                    + "that lead to the root, in order")
        }
        throw CertificateError(
            .keyMismatch, keyPath,
            "does not belong to the certificate in \(path), which is for \(nameList)",
            remedy: "give both files of one issuance; they may have been renewed separately")
    }

    private func isKey(_ key: PrivateKey, of certificate: Certificate) -> Bool {
        defer { ErrorQueue.clear() }
        return X509_check_private_key(certificate.pointer, key.pointer) == 1
    }

    /// Whether each certificate was signed by the one behind it.
    func checkOrder() throws(CertificateError) {
        let all = self.all
        for index in all.indices.dropLast() where !isIssuer(all[index + 1], of: all[index]) {
            if let signer = all.indices.first(where: {
                $0 != index && isIssuer(all[$0], of: all[index])
            }) {
                throw CertificateError(
                    .chain, path,
                    "its certificates are in the wrong order: number \(signer + 1) signed number "
                        + "\(index + 1) and must stand right behind it",
                    remedy: "order them from the server's towards the root")
            }
            throw CertificateError(
                .chain, path,
                "its chain is broken: number \(index + 1) was signed by "
                    + "\(Certificate.issuer(of: all[index].pointer)), which is not in the file; "
                    + "behind it stands \(Certificate.subject(of: all[index + 1].pointer))",
                remedy: "put the intermediate certificates of the issuer there, in order")
        }
    }

    private func isIssuer(_ issuer: Certificate, of certificate: Certificate) -> Bool {
        defer { ErrorQueue.clear() }
        return X509_check_issued(issuer.pointer, certificate.pointer) == X509_V_OK
            && X509_verify(certificate.pointer, X509_get0_pubkey(issuer.pointer)) == 1
    }

    /// Whether every certificate is valid now.
    ///
    /// - Parameter now: Seconds since 1970.
    func checkValidity(at now: Int64) throws(CertificateError) {
        for (index, certificate) in all.enumerated() {
            let which = index == 0 ? "" : " (number \(index + 1) in the file)"
            let (from, to) = Certificate.validitySeconds(of: certificate.pointer)
            let days = Certificate.validity(of: certificate.pointer)
            if now > to {
                throw CertificateError(
                    .expired, path, "expired on \(days.to)\(which)", remedy: "renew the certificate"
                )
            }
            if now < from {
                throw CertificateError(
                    .notYetValid, path, "is not valid before \(days.from)\(which)",
                    remedy: "check this machine's clock")
            }
        }
    }

    /// Whether keys and signatures are what clients accept: 112 bits of security (NIST SP 800-57).
    func checkStrength() throws(CertificateError) {
        for (index, certificate) in all.enumerated() {
            let which = index == 0 ? "its certificate" : "certificate number \(index + 1) in it"
            if let key = X509_get0_pubkey(certificate.pointer),
                EVP_PKEY_get_security_bits(key) < 112
            {
                throw CertificateError(
                    .weak, path, "\(which) has a key of only \(EVP_PKEY_get_bits(key)) bits",
                    remedy: "use RSA with 2048 bits or more, or ECDSA with P-256")
            }
            // Nobody checks the signature of a root.
            if isIssuer(certificate, of: certificate) { continue }
            var digest: Int32 = 0
            var bits: Int32 = 0
            if X509_get_signature_info(certificate.pointer, &digest, nil, &bits, nil) == 1,
                bits < 100
            {
                let name = OBJ_nid2sn(digest).map { String(cString: $0) } ?? "a weak digest"
                throw CertificateError(
                    .weak, path, "\(which) is signed with \(name)", remedy: "have it issued again")
            }
        }
    }

    /// Whether the first certificate is for a server, and for which names.
    func checkPurpose() throws(CertificateError) {
        if names.isEmpty {
            throw CertificateError(
                .names, path, "is for no host name: it has no subjectAltName",
                remedy: "have it issued with the names that clients use; the common name is not "
                    + "looked at")
        }
        if X509_check_purpose(leaf.pointer, X509_PURPOSE_SSL_SERVER, 0) != 1 {
            throw CertificateError(
                .purpose, path, "is not for a server (extendedKeyUsage)",
                remedy: "have it issued for serverAuth")
        }
        ErrorQueue.clear()
    }

    /// The names and addresses of the first certificate.
    var names: [String] { Certificate.names(of: leaf.pointer, limit: 1000) }

    private var nameList: String {
        let names = Certificate.names(of: leaf.pointer)
        return names.isEmpty ? "no name" : names.joined(separator: ", ")
    }

    /// The certificate stands alone, although it says where its issuer's can be had: public
    /// authorities never sign with a root.
    var isProbablyIncomplete: Bool {
        guard issuers.isEmpty,
            let access = X509_get_ext_d2i(leaf.pointer, NID_info_access, nil, nil)
        else { return false }
        // Safe: with this NID OpenSSL returns an AUTHORITY_INFO_ACCESS stack that is ours to free.
        let list = OpaquePointer(access)
        defer { AUTHORITY_INFO_ACCESS_free(list) }
        return (0..<max(0, OPENSSL_sk_num(list))).contains { index in
            guard let element = OPENSSL_sk_value(list, index) else { return false }
            let description = element.assumingMemoryBound(to: ACCESS_DESCRIPTION.self).pointee
            return OBJ_obj2nid(description.method) == NID_ad_ca_issuers
        }
    }
}
