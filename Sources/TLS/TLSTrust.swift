internal import COpenSSL
internal import Glibc

/// Whose certificates a client believes.
public enum TLSTrust: Sendable, Hashable {
    /// The system's store, as OpenSSL finds it: the file in SSL_CERT_FILE, or the default file
    /// and folder.
    case system
    /// The certificates of a PEM file, and no others.
    case certificates(inFile: String)

    /// Where the certificates come from, for messages.
    var origin: String {
        switch self {
        case .certificates(let path): path
        case .system:
            if let file = Self.fileOfEnvironment {
                "\(file), which SSL_CERT_FILE names"
            } else {
                "the system's store (\(String(cString: X509_get_default_cert_file())))"
            }
        }
    }

    /// SSL_CERT_FILE, when it is set to something.
    static var fileOfEnvironment: String? {
        guard let value = getenv(X509_get_default_cert_file_env()) else { return nil }
        let path = String(cString: value)
        return path.isEmpty ? nil : path
    }
}
