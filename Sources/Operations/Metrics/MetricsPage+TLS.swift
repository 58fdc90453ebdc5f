internal import TLS

extension MetricsPage {
    /// Certificates and handshakes; nothing where no listener has TLS.
    func appendTLS(
        _ certificates: CertificateStatus,
        _ listeners: [(name: String, values: [ListenerCounters])],
        to text: inout MetricsText
    ) {
        let expiries = certificates.expiries
        if expiries.isEmpty { return }
        text.family(
            "portcullis_tls_certificate_expiry_timestamp_seconds", .gauge,
            "When the certificate in use expires, in seconds since 1970.")
        for expiry in expiries {
            text.sample([("certificate", expiry.file)], UInt64(clamping: expiry.notAfter))
        }
        text.family(
            "portcullis_tls_certificate_reloads_total", .counter,
            "Changed certificate files that were read; after a failure the old ones stay in use.")
        text.sample([("result", "success")], certificates.succeeded)
        text.sample([("result", "failure")], certificates.failed)
        text.family(
            "portcullis_tls_handshakes_total", .counter,
            "TLS handshakes with clients that were completed; resumed: without a signature.")
        for listener in listeners {
            let label = ("listener", listener.name)
            text.sample([label, ("kind", "full")], sum(listener.values) { $0.secured.total })
            text.sample([label, ("kind", "resumed")], sum(listener.values) { $0.resumed.total })
        }
        text.family(
            "portcullis_tls_kernel_connections_total", .counter,
            "TLS connections of clients for which the kernel encrypts what is sent.")
        for listener in listeners {
            text.sample(
                [("listener", listener.name)], sum(listener.values) { $0.sealedByKernel.total })
        }
        text.family(
            "portcullis_tls_handshake_failures_total", .counter,
            "TLS handshakes with clients that failed.")
        appendWords(listeners, "listener", by: "reason", to: &text) { $0.failedHandshakes }
    }
}
