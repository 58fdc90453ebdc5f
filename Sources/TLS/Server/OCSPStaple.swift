internal import COpenSSL

/// What an authority said about one certificate (RFC 6960), to be handed to clients (RFC 6066,
/// section 8) so that they need not ask.
struct OCSPStaple: Sendable {
    /// The response as the authority signed it.
    let bytes: [UInt8]
    /// Seconds since 1970 at which it has to be replaced; nil when it does not say.
    let nextUpdate: Int64?

    /// Whether clients would still accept it.
    func isFresh(at now: Int64) -> Bool {
        nextUpdate.map { now < $0 } ?? true
    }

    /// Parses a response in DER, and checks that it is about this certificate.
    init(_ file: IdentityFile, for leaf: Certificate, in path: String) throws(CertificateError) {
        bytes = file.bytes
        ErrorQueue.clear()
        let parsed = file.bytes.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            return d2i_OCSP_RESPONSE(nil, &start, buffer.count)
        }
        ErrorQueue.clear()
        guard let response = parsed else {
            throw CertificateError(
                .ocsp, file.path, "there is no OCSP response in DER format in it",
                remedy:
                    "fetch it: openssl ocsp -issuer ISSUER -cert CERTIFICATE -url URL -respout FILE"
            )
        }
        defer { OCSP_RESPONSE_free(response) }
        guard OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL,
            let basic = OCSP_response_get1_basic(response)
        else {
            throw CertificateError(
                .ocsp, file.path, "the OCSP responder gave an error instead of an answer",
                remedy: "fetch it again")
        }
        defer { OCSP_BASICRESP_free(basic) }
        guard let single = Self.answer(for: leaf, in: basic) else {
            throw CertificateError(
                .ocsp, file.path, "is about another certificate than the one in \(path)",
                remedy: "fetch it anew after each renewal")
        }
        var to: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
        let status = OCSP_single_get0_status(single, nil, nil, nil, &to)
        if status != V_OCSP_CERTSTATUS_GOOD {
            throw CertificateError(
                .ocsp, file.path,
                status == V_OCSP_CERTSTATUS_REVOKED
                    ? "says that the certificate in \(path) was revoked"
                    : "says that its authority does not know the certificate in \(path)",
                remedy: "have a new certificate issued")
        }
        nextUpdate = to.map { Certificate.seconds($0) }
    }

    private static func answer(for leaf: Certificate, in basic: OpaquePointer) -> OpaquePointer? {
        let serial = X509_get0_serialNumber(leaf.pointer)
        for index in 0..<max(0, OCSP_resp_count(basic)) {
            guard let single = OCSP_resp_get0(basic, index) else { continue }
            var found: UnsafeMutablePointer<ASN1_INTEGER>?
            let id = OCSP_SINGLERESP_get0_id(single)
            if OCSP_id_get0_info(nil, nil, nil, &found, id) == 1, let found,
                ASN1_INTEGER_cmp(found, serial) == 0
            {
                return single
            }
        }
        return nil
    }
}
