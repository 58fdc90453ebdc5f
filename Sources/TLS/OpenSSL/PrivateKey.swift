internal import COpenSSL

/// Owns one reference to a private key.
///
/// Safe to be Sendable: never changed after `init`, and OpenSSL counts its references atomically.
final class PrivateKey: @unchecked Sendable {
    /// Owned; freed in `deinit`.
    let pointer: OpaquePointer

    /// Takes over one reference.
    init(owning pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        EVP_PKEY_free(pointer)
    }

    /// Such as "RSA 2048" or "EC 256".
    var summary: String { "\(kind) \(EVP_PKEY_get_bits(pointer))" }

    /// Such as "RSA" or "EC".
    var kind: String {
        EVP_PKEY_get0_type_name(pointer).map { String(cString: $0) } ?? "unknown"
    }

    /// Reads a PEM file.
    static func read(_ file: IdentityFile) throws(CertificateError) -> PrivateKey {
        if file.contains("ENCRYPTED") {
            throw CertificateError(
                .password, file.path, "the private key is protected with a password",
                remedy: "store it without one (openssl pkey -in KEY -out NEW) and let only this "
                    + "process's user read it")
        }
        ErrorQueue.clear()
        let pointer = withBIO(of: file.bytes) { bio in
            // Without a callback OpenSSL would ask the terminal for a password.
            PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        }
        if let pointer, let pointer { return PrivateKey(owning: pointer) }
        let reason = ErrorQueue.drain()
        if file.contains("BEGIN CERTIFICATE") {
            throw CertificateError(
                .format, file.path, "holds a certificate where a private key should be",
                remedy: "\"key\" needs the file of the key")
        }
        let isPEM = file.contains("-----BEGIN")
        throw CertificateError(
            .format, file.path,
            isPEM
                ? "the private key in it is damaged: \(reason)"
                : "there is no private key in PEM format in it",
            remedy: isPEM
                ? "restore the file, or issue a new certificate"
                : "convert it: openssl pkey -inform DER -in KEY -out NEW")
    }
}
