internal import Configuration
internal import Policy
internal import Proxy
internal import TLS

/// The certificates of one listener as `check` and `explain` see them: each of them good, or with
/// what is wrong.
struct ListenerCertificates {
    /// One of the configured certificates.
    struct Entry {
        /// Its files.
        let files: CertificateFiles
        /// What is in them, or why they are of no use.
        let content: Result<ServerCertificate, CertificateError>
    }

    /// Where it listens.
    let listen: ListenAddress
    /// In the order of the configuration.
    let entries: [Entry]
    /// Who signs the certificates of clients.
    let clientCA: String?

    /// Reads the files of every listener that has TLS.
    ///
    /// - Parameter now: Seconds since 1970.
    static func all(_ configuration: Configuration, now: Int64) -> [ListenerCertificates] {
        configuration.listeners.compactMap { listener in
            TLSServerSettings(listener).map { settings in
                ListenerCertificates(
                    listen: listener.listen,
                    entries: settings.certificates.map { files in
                        Entry(files: files, content: load(files, now))
                    }, clientCA: settings.clientCA)
            }
        }
    }

    private static func load(
        _ files: CertificateFiles, _ now: Int64
    ) -> Result<ServerCertificate, CertificateError> {
        do throws(CertificateError) {
            return .success(try ServerCertificate(files, now: now))
        } catch {
            return .failure(error)
        }
    }

    /// The place of the certificate that a client gets who asks for a name.
    ///
    /// - Parameter host: May be a wildcard: then a name below it.
    /// - Returns: the place, and whether the certificate is for that name.
    func choice(for host: String) -> (index: Int, isForName: Bool) {
        let names = entries.map { entry in (try? entry.content.get())?.names ?? [] }
        let asked = host.hasPrefix("*.") ? "any" + host.dropFirst() : host
        let found = ServerNames(names).find(asked.utf8)
        return (found ?? 0, found != nil)
    }

    /// What keeps the configuration from being used; files that are not there are no mistake where
    /// the configuration is only checked.
    var mistakes: [CertificateError] {
        let errors = entries.compactMap { entry in
            if case .failure(let error) = entry.content { error } else { nil }
        }
        let authorities = clientCA.flatMap { CertificateError.inAuthorities($0) }
        return (errors + [authorities].compactMap(\.self)).filter { $0.kind != .missing }
    }

    /// The same of what connections to an upstream are made with.
    static func mistakes(of upstream: Upstream, now: Int64) -> [CertificateError] {
        let certificate = upstream.tls?.certificate.map(CertificateFiles.init)
        let errors = [
            upstream.tls?.ca.flatMap { CertificateError.inAuthorities($0) },
            certificate.flatMap { CertificateError.inClient($0, now: now) },
        ]
        return errors.compactMap(\.self).filter { $0.kind != .missing }
    }

    /// What is not right but does no harm yet.
    var warnings: [CertificateError] {
        entries.flatMap { (try? $0.content.get())?.warnings ?? [] }
    }

    /// Rows for `check`: certificate, names, last day, key, and the routes whose hosts get it.
    func rows(_ routes: [Route]) -> [[String]] {
        entries.enumerated().map { index, entry in
            let served = routes.filter { route in
                route.hosts.isEmpty
                    || route.hosts.contains { choice(for: $0).index == index }
            }
            let names = served.map(\.name).joined(separator: ", ")
            switch entry.content {
            case .success(let certificate):
                return [
                    listen.description, entry.files.certificate,
                    certificate.names.joined(separator: ", "), certificate.lastDay,
                    certificate.keySummary, names.isEmpty ? "-" : names,
                ]
            case .failure:
                return [
                    listen.description, entry.files.certificate, "not readable here", "?", "?",
                    names.isEmpty ? "-" : names,
                ]
            }
        }
    }
}
