internal import Configuration
internal import Operations
internal import Proxy
internal import Reactor
internal import TLS

/// Certificates: loaded at the start and with each configuration, and again when their files
/// change.
extension Service {
    private static let watchInterval = Duration.seconds(2)

    /// Reads the files of a configuration; those that did not change since the last time are not
    /// read again.
    func loadCertificates(_ configuration: Configuration) throws(ServedTLSError) -> ServedTLS {
        let tls = try ServedTLS(configuration, previous: serving.tls, tickets: tickets)
        for certificate in tls.certificates {
            for warning in certificate.warnings {
                log.log(.warning, "certificate", [("warning", "\(warning)")])
            }
        }
        return tls
    }

    /// Loads files that changed. Connections that are open keep what they began with.
    func watchCertificates() async {
        let waiter = Waiter(loop: loop)
        var watch = CertificateWatch()
        while !isDraining {
            _ = await waiter.wait(until: loop.now.advanced(by: Self.watchInterval))
            if isDraining || isReloading || !watch.isDue(serving.tls.versions) { continue }
            await renewCertificates()
        }
        waiter.invalidate()
    }

    private func renewCertificates() async {
        let before = serving
        do throws(ServedTLSError) {
            let tls = try loadCertificates(before.configuration)
            await adopt(
                ServingConfiguration(
                    before.configuration, addresses: before.addresses, tls: tls,
                    previous: before))
            certificates.ended(succeeded: true)
            for certificate in tls.certificates {
                log.log(
                    .info, "certificate in use",
                    [
                        ("certificate", certificate.files.certificate),
                        ("names", certificate.names.prefix(10).joined(separator: " ")),
                        ("expires", certificate.lastDay),
                    ])
            }
        } catch {
            certificates.ended(succeeded: false)
            for mistake in error.mistakes {
                log.log(
                    .error, "changed certificate not loaded; the old one stays in use",
                    [("error", mistake)])
            }
        }
    }
}
