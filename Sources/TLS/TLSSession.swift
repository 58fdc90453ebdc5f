internal import COpenSSL

/// What a completed handshake found out about a connection: for log lines and upstream fields. One
/// object for each connection, shared by its requests.
public final class TLSSession: Sendable {
    /// The negotiated version, such as "TLSv1.3".
    public let version: StaticString
    /// The host name that the client asked for (SNI), lower case and without a final dot; empty
    /// where it named none.
    public let serverName: [UInt8]
    /// The place of the certificate that the client was shown; nil where we are the client.
    public let certificate: ServerCertificate?
    /// The protocol that ALPN agreed on; empty where the peer has no ALPN.
    public let alpn: [UInt8]
    /// No signature was made: an earlier session goes on.
    public let isResumed: Bool
    /// Who the client is, by a verified certificate; nil where none was asked for.
    public let client: ClientIdentity?

    init(_ stream: OpaquePointer) {
        version =
            switch SSL_version(stream) {
            case TLS1_2_VERSION: "TLSv1.2"
            case TLS1_3_VERSION: "TLSv1.3"
            default: "unknown"
            }
        serverName = Self.serverName(stream)
        certificate = ServerContext.of(stream)?.certificate
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(stream, &start, &count)
        alpn = Array(UnsafeBufferPointer(start: start, count: Int(count)))
        isResumed = SSL_session_reused(stream) == 1
        // A client, too, has a peer certificate; only a server's is somebody's identity here.
        client =
            SSL_is_server(stream) == 1
            ? SSL_get0_peer_certificate(stream).map(ClientIdentity.init) : nil
    }

    private static func serverName(_ stream: OpaquePointer) -> [UInt8] {
        guard let text = SSL_get_servername(stream, TLSEXT_NAMETYPE_host_name) else { return [] }
        // OpenSSL refuses names with NUL in them, and longer ones than 255 bytes.
        var name = String(cString: text).utf8.map { 65...90 ~= $0 ? $0 | 0x20 : $0 }
        if name.last == UInt8(ascii: ".") { name.removeLast() }
        return name
    }
}

/// A client's verified certificate, as text that is safe in a field and in a log.
public struct ClientIdentity: Sendable, Equatable {
    private static let longestSubject = 512

    /// Its distinguished name (RFC 4514): printable ASCII, everything else escaped; cut at 512
    /// bytes.
    public let subject: [UInt8]
    /// SHA-256 of the certificate in 64 lower-case hex digits.
    public let fingerprint: [UInt8]

    init(_ certificate: OpaquePointer) {
        subject = Self.subject(of: certificate)
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        X509_digest(certificate, EVP_sha256(), &digest, nil)
        let digits = Array("0123456789abcdef".utf8)
        fingerprint = digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }

    private static func subject(of certificate: OpaquePointer) -> [UInt8] {
        guard let bio = BIO_new(BIO_s_mem()) else { return [] }
        defer { BIO_free(bio) }
        // XN_FLAG_RFC2253 escapes control characters and everything beyond ASCII.
        X509_NAME_print_ex(
            bio, X509_get_subject_name(certificate), 0,
            COpenSSL_XN_FLAG_RFC2253)
        var bytes = [UInt8](repeating: 0, count: longestSubject)
        let count = BIO_read(bio, &bytes, Int32(bytes.count))
        return bytes.prefix(Int(max(0, count))).map { 0x20...0x7E ~= $0 ? $0 : 0x3F }
    }
}
