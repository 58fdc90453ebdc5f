internal import COpenSSL
internal import Glibc

/// What a listener with TLS has to know.
public struct TLSServerSettings: Sendable, Hashable {
    public enum Version: Sendable { case tls12, tls13 }

    /// At least one; the first is for clients that name no host, or none that we have.
    public var certificates: [CertificateFiles]
    /// PEM file: who may sign the certificates that clients must have; nil asks for none.
    public var clientCA: String?
    /// Older ones are refused.
    public var minimumVersion = Version.tls12
    /// The kernel seals what is sent, where it can for the cipher and the connection.
    public var usesKernel = false
    /// ALPN names, the preferred first.
    public var protocols: [String]

    public init(
        certificates: [CertificateFiles], clientCA: String? = nil,
        protocols: [String] = ["http/1.1"]
    ) {
        self.certificates = certificates
        self.clientCA = clientCA
        self.protocols = protocols
    }

    /// Every file that is read.
    public var paths: [String] { certificates.flatMap(\.paths) + (clientCA.map { [$0] } ?? []) }
}

/// The TLS side of a listener: its certificates, picked by the name that a client asks for (SNI,
/// RFC 6066 section 3). Immutable and shared by all loops; a reload makes another one, and open
/// connections keep the one that they began with.
///
/// Safe to be Sendable: never changed after `init`, and OpenSSL counts references atomically.
public final class TLSServer: @unchecked Sendable {
    /// In the order of the configuration.
    public let certificates: [ServerCertificate]
    /// What it was made from.
    public let settings: TLSServerSettings
    private let names: ServerNames
    // Set once, at the end of `init`: the contexts refer back.
    private var contexts: [ServerContext] = []

    /// Reads and checks every file. Blocks: not for a loop that serves.
    ///
    /// - Parameters:
    ///   - tickets: Shared by all servers of the process, and kept over reloads.
    ///   - now: Seconds since 1970.
    /// - Throws: everything that is wrong.
    public init(
        _ settings: TLSServerSettings, tickets: TicketKeys, now: Int64 = wallSeconds()
    ) throws(CertificateErrors) {
        self.settings = settings
        var errors: [CertificateError] = []
        var certificates: [ServerCertificate] = []
        for files in settings.certificates {
            do throws(CertificateError) {
                certificates.append(try ServerCertificate(files, now: now))
            } catch {
                errors.append(error)
            }
        }
        var authorities: Authorities?
        if let path = settings.clientCA {
            do throws(CertificateError) {
                authorities = try Authorities(try IdentityFile(path))
            } catch {
                errors.append(error)
            }
        }
        self.certificates = certificates
        names = ServerNames(certificates.map(\.names))
        if !errors.isEmpty { throw CertificateErrors(errors) }
        for certificate in certificates {
            do throws(CertificateError) {
                contexts.append(
                    try ServerContext(
                        certificate, settings, authorities, tickets: tickets, server: self))
            } catch {
                throw CertificateErrors([error])
            }
        }
    }

    /// The certificate that a client gets who asks for a name.
    ///
    /// - Parameter name: A host name in any case, or empty where the client named none.
    public func certificate(for name: some Collection<UInt8>) -> ServerCertificate? {
        let index = names.find(name) ?? 0
        return certificates.indices.contains(index) ? certificates[index] : nil
    }

    /// The context that a stream begins with.
    var initial: TLSContext? { contexts.first?.context }

    /// Changes a stream over to the certificate for the name that its client asked for.
    ///
    /// - Returns: whether there is one.
    func choose(for stream: OpaquePointer) -> Bool {
        guard let text = SSL_get_servername(stream, TLSEXT_NAMETYPE_host_name) else { return false }
        let name = UnsafeBufferPointer(
            start: UnsafeRawPointer(text).assumingMemoryBound(to: UInt8.self),
            count: strnlen(text, 256))
        guard let index = names.find(name), contexts.indices.contains(index) else { return false }
        SSL_set_SSL_CTX(stream, contexts[index].context.pointer)
        return true
    }
}

/// Seconds since 1970.
public func wallSeconds() -> Int64 { Int64(time(nil)) }
