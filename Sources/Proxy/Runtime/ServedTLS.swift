public import Configuration
internal import Reactor
public import TLS

/// Why the TLS side of a configuration cannot be used: every file that is wrong.
public struct ServedTLSError: Error, Sendable, CustomStringConvertible {
    /// One for each file, with the listener or upstream that it belongs to.
    public let mistakes: [String]

    public var description: String { mistakes.joined(separator: "\n") }
}

/// The TLS side of a configuration: certificates of listeners, and whom upstreams' certificates are
/// held against. Immutable and shared by all loops; files that change make another one, in which
/// what did not change is the same.
public final class ServedTLS: Sendable {
    /// For configurations that have none of it.
    public static let none = ServedTLS()

    /// The machine's kernel encrypts for those who ask for it; nil where no listener does.
    public let isKernelOffered: Bool?

    private let servers: [ListenAddress: Part<TLSServerSettings, TLSServer>]
    private let clients: [String: Part<ClientSettings, TLSContext>]

    private struct ClientSettings: Equatable {
        let tls: UpstreamTLS
        let alpn: String
    }

    /// What was read from files, and which versions of them.
    private struct Part<Settings: Sendable & Equatable, Value: Sendable>: Sendable {
        let settings: Settings
        let versions: FileVersions
        let value: Value

        /// Takes the value over from `previous` when neither settings nor files have changed since.
        init<Failure: Error>(
            _ settings: Settings, paths: [String], previous: Self?,
            make: () throws(Failure) -> Value
        ) throws(Failure) {
            // Before the files are read: a change meanwhile is then found by the next look.
            versions = FileVersions(paths)
            self.settings = settings
            if let previous, previous.settings == settings, previous.versions == versions {
                value = previous.value
            } else {
                value = try make()
            }
        }
    }

    private init() {
        isKernelOffered = nil
        servers = [:]
        clients = [:]
    }

    /// Reads and checks every file that changed since `previous`. Blocks: not for a loop that
    /// serves.
    ///
    /// - Parameter tickets: Shared by all listeners, and kept over reloads.
    public init(
        _ configuration: Configuration, previous: ServedTLS, tickets: TicketKeys
    ) throws(ServedTLSError) {
        let isKernelAsked = configuration.listeners.contains { $0.tls?.usesKernel == true }
        let isKernelOffered = isKernelAsked ? KernelTLS.isOffered() : nil
        self.isKernelOffered = isKernelOffered
        var mistakes: [String] = []
        var servers: [ListenAddress: Part<TLSServerSettings, TLSServer>] = [:]
        for listener in configuration.listeners {
            guard var settings = TLSServerSettings(listener) else { continue }
            // Asking a kernel that has none would cost every handshake a system call.
            if isKernelOffered != true { settings.usesKernel = false }
            do throws(CertificateErrors) {
                servers[listener.listen] = try Part(
                    settings, paths: settings.paths, previous: previous.servers[listener.listen]
                ) { () throws(CertificateErrors) in try TLSServer(settings, tickets: tickets) }
            } catch {
                mistakes += error.all.map { "listener \(listener.name): \($0)" }
            }
        }
        var clients: [String: Part<ClientSettings, TLSContext>] = [:]
        for upstream in configuration.upstreams {
            guard let tls = upstream.tls else { continue }
            let settings = ClientSettings(tls: tls, alpn: upstream.serverProtocol.rawValue)
            do throws(TLSError) {
                clients[upstream.name] = try Part(
                    settings, paths: tls.paths, previous: previous.clients[upstream.name]
                ) { () throws(TLSError) in try TLSContext.client(tls, alpn: settings.alpn) }
            } catch {
                mistakes.append("upstream \(upstream.name): \(error)")
            }
        }
        if !mistakes.isEmpty { throw ServedTLSError(mistakes: mistakes) }
        self.servers = servers
        self.clients = clients
    }

    /// The certificates of a listener; nil where it speaks plain text.
    func server(of listener: ListenAddress) -> TLSServer? { servers[listener]?.value }

    /// What connections to an upstream are made with; nil where they are plain text.
    func client(of upstream: String) -> TLSContext? { clients[upstream]?.value }

    /// Every certificate that is shown to clients; one that several listeners have is there once.
    public var certificates: [ServerCertificate] {
        // By the file, which is its label in metrics: they must not have one sample twice.
        var seen: Set<String> = []
        let all = servers.sorted { "\($0.key)" < "\($1.key)" }.flatMap(\.value.value.certificates)
        return all.filter { seen.insert($0.files.certificate).inserted }
    }

    /// Whether there is any file that could change.
    public var isEmpty: Bool { servers.isEmpty && clients.isEmpty }

    /// The versions of the files that were read.
    public var versions: FileVersions {
        servers.values.map(\.versions).merged(with: clients.values.map(\.versions))
    }
}

/// Which versions of files there are.
public struct FileVersions: Sendable, Equatable {
    private var versions: [String: FileStatus?] = [:]

    /// Looks at files as they are now.
    init(_ paths: [String]) {
        for path in paths { versions[path] = .some(try? Syscalls.status(ofPath: path)) }
    }

    /// The same files as they are now.
    public var now: FileVersions { FileVersions(Array(versions.keys)) }

    /// Adds other files.
    mutating func add(_ others: FileVersions) {
        versions.merge(others.versions) { first, _ in first }
    }
}

extension [FileVersions] {
    fileprivate func merged(with others: [FileVersions]) -> FileVersions {
        var all = FileVersions([])
        for versions in self + others { all.add(versions) }
        return all
    }
}

extension TLSServerSettings {
    /// The settings of a listener; nil where it has no `tls`.
    public init?(_ listener: Listener) {
        guard let tls = listener.tls else { return nil }
        // The preferred first.
        let preferences: [ClientProtocol] = [.http2, .http1]
        let protocols = preferences.filter(listener.protocols.contains).map(\.rawValue)
        self.init(
            certificates: tls.certificates.map(CertificateFiles.init), clientCA: tls.clientCA,
            protocols: protocols)
        minimumVersion = tls.minimumVersion == .tls13 ? .tls13 : .tls12
        usesKernel = tls.usesKernel
    }
}

extension CertificateFiles {
    /// The files as configured.
    public init(_ files: TLSCertificate) {
        self.init(certificate: files.certificate, key: files.key, ocsp: files.ocsp)
    }
}

extension TLSContext {
    fileprivate static func client(
        _ tls: UpstreamTLS, alpn: String
    ) throws(TLSError) -> TLSContext {
        try client(
            trust: tls.ca.map { .certificates(inFile: $0) } ?? .system,
            identity: tls.certificate.map(CertificateFiles.init), protocols: [alpn])
    }
}

extension UpstreamTLS {
    fileprivate var paths: [String] {
        [ca, certificate?.certificate, certificate?.key].compactMap(\.self)
    }
}
