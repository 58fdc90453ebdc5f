public import Proxy
internal import Synchronization
internal import TLS

/// The certificates that are shown to clients, and how renewals of their files went, for the
/// metrics.
public final class CertificateStatus: Sendable {
    /// One certificate.
    struct Expiry: Sendable {
        /// The file that it comes from.
        let file: String
        /// Its last second, since 1970.
        let notAfter: Int64
    }

    private struct State {
        var expiries: [Expiry] = []
        var succeeded: UInt64 = 0
        var failed: UInt64 = 0
    }

    private let state = Mutex(State())

    public init() {}

    /// These are shown from now on.
    public func note(_ tls: ServedTLS) {
        let expiries = tls.certificates.map {
            Expiry(file: $0.files.certificate, notAfter: $0.notAfter)
        }
        state.withLock { $0.expiries = expiries }
    }

    /// Files that changed were read: `succeeded` when their content is in use now.
    public func ended(succeeded: Bool) {
        state.withLock { state in
            if succeeded { state.succeeded += 1 } else { state.failed += 1 }
        }
    }

    var expiries: [Expiry] { state.withLock { $0.expiries } }
    var succeeded: UInt64 { state.withLock { $0.succeeded } }
    var failed: UInt64 { state.withLock { $0.failed } }
}
