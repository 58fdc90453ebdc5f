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
        if tls.isKernelOffered != serving.tls.isKernelOffered { noteKernel(tls, configuration) }
        return tls
    }

    /// Whether listeners get the kernel TLS that they ask for.
    private func noteKernel(_ tls: ServedTLS, _ configuration: Configuration) {
        guard let isOffered = tls.isKernelOffered else { return }
        let asking = configuration.listeners.filter { $0.tls?.usesKernel == true }.map(\.name)
        let listeners = [("listeners", asking.joined(separator: " "))]
        if isOffered {
            log.log(.info, "kernel TLS: the kernel encrypts what listeners send", listeners)
        } else {
            log.log(
                .warning,
                "kernel TLS is not offered by this machine (TCP_ULP \"tls\" was refused; "
                    + "\"modprobe tls\" may help); the process encrypts itself",
                listeners)
        }
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
