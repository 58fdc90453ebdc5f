public import Proxy
internal import Synchronization
internal import TLS

/// The certificates that are shown to clients, and how renewals of their files went, for the
/// metrics and `portcullis status`.
public final class CertificateStatus: Sendable {
    /// One certificate.
    struct Expiry: Sendable {
        /// The file that it comes from.
        let file: String
        /// Its last second, since 1970.
        let notAfter: Int64
        /// The hosts that it is for.
        let names: [String]
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
            Expiry(file: $0.files.certificate, notAfter: $0.notAfter, names: $0.names)
        }
        state.withLock { $0.expiries = expiries }
    }

    /// Files that changed were read: `succeeded` when their content is in use now.
    public func ended(succeeded: Bool) {
        state.withLock { state in
            if succeeded { state.succeeded += 1 } else { state.failed += 1 }
        }
    }

    /// What a report says of them.
    ///
    /// - Parameter now: Seconds since 1970.
    public func report(at now: Int64) -> [StatusReport.CertificatePart] {
        expiries.map {
            StatusReport.CertificatePart(
                file: $0.file, names: Array($0.names.prefix(Self.nameLimit)),
                expiresAt: InternetTime.text($0.notAfter),
                secondsLeft: $0.notAfter.subtractingReportingOverflow(now).partialValue)
        }
    }

    /// Names of a certificate that a report tells.
    private static let nameLimit = 10

    var expiries: [Expiry] { state.withLock { $0.expiries } }
    var succeeded: UInt64 { state.withLock { $0.succeeded } }
    var failed: UInt64 { state.withLock { $0.failed } }
}
