internal import COpenSSL

/// Why the peer's certificate was refused, in words that name what to change. OpenSSL forgets the
/// certificate of a handshake that failed, so it has to be looked at while the check runs.
final class PeerVerification {
    /// The first thing that was wrong.
    private(set) var failure: String?
    private let trustOrigin: String
    /// Where the sessions go that the peer offers; nil where none are kept.
    var resumption: TLSResumption.Attempt?

    init(trustOrigin: String) {
        self.trustOrigin = trustOrigin
    }

    /// Lets `stream`'s check report here. This object must outlive the stream.
    func observe(_ stream: OpaquePointer) {
        SSL_set_ex_data(stream, 0, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The callback for `SSL_CTX_sess_set_new_cb`: 1 keeps the reference.
    static let sessionCallback: @convention(c) (OpaquePointer?, OpaquePointer?) -> Int32 = {
        stream, session in
        guard let stream, let session, let observer = SSL_get_ex_data(stream, 0) else { return 0 }
        // Safe: `observe` stored it, and the stream's owner keeps it alive.
        let verification = Unmanaged<PeerVerification>.fromOpaque(observer).takeUnretainedValue()
        return verification.resumption?.keep(session, of: stream) == true ? 1 : 0
    }

    /// The callback for `SSL_CTX_set_verify`. It changes no outcome.
    static let callback: @convention(c) (Int32, OpaquePointer?) -> Int32 = { isGood, store in
        if isGood == 1 { return 1 }
        guard let store,
            let stream = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()),
            let observer = SSL_get_ex_data(OpaquePointer(stream), 0)
        else { return 0 }
        // Safe: `observe` stored it, and the stream's owner keeps it alive.
        Unmanaged<PeerVerification>.fromOpaque(observer).takeUnretainedValue().record(store)
        return 0
    }

    private func record(_ store: OpaquePointer) {
        if failure != nil { return }
        let code = X509_STORE_CTX_get_error(store)
        let text = String(cString: X509_verify_cert_error_string(Int(code)))
        guard
            let certificate = X509_STORE_CTX_get_current_cert(store)
                ?? X509_STORE_CTX_get0_cert(store)
        else {
            failure = text
            return
        }
        failure = "\(text)\(explanation(code, certificate))"
    }

    private func explanation(_ code: Int32, _ certificate: OpaquePointer) -> String {
        switch code {
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            let names = Certificate.names(of: certificate)
            let list = names.isEmpty ? "no host at all" : names.joined(separator: ", ")
            return ": certificate is for \(list)"
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return " (on \(Certificate.validity(of: certificate).to))"
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return " (before \(Certificate.validity(of: certificate).from))"
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            return ": issuer \(Certificate.issuer(of: certificate)) is not in \(trustOrigin)"
        default:
            return ""
        }
    }
}
