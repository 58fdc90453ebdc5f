import TLS
import TestKit
import Testing

@Suite("Certificate files")
struct CertificateErrorTests {
    let folder: TemporaryFolder
    let mint: CertificateMint

    init() throws {
        folder = try TemporaryFolder()
        mint = try CertificateMint(in: folder)
    }

    private func error(_ files: CertificateFiles) throws -> CertificateError {
        try #require(
            #expect(throws: CertificateError.self) {
                _ = try ServerCertificate(files, now: wallSeconds())
            })
    }

    private func expect(
        _ files: CertificateFiles, _ kind: CertificateError.Kind, in file: String, _ words: String
    ) throws {
        let error = try error(files)
        #expect(error.kind == kind)
        #expect(error.file == file)
        #expect(error.reason.contains(words), "\(error)")
        #expect(!error.remedy.isEmpty)
    }

    @Test("a good certificate tells its names, its life and its key")
    func good() throws {
        let files = CertificateFiles(try mint.issue(["DNS:A.example.com", "IP:127.0.0.1"]))
        let now = wallSeconds()
        let certificate = try ServerCertificate(files, now: now)
        #expect(certificate.names == ["a.example.com", "127.0.0.1"])
        #expect(abs(certificate.notAfter - now - 5 * 86_400) < 60)
        #expect(certificate.keySummary == "EC 256")
        #expect(certificate.issuer == "/CN=Test CA")
        #expect(certificate.warnings.isEmpty)
    }

    @Test("says which file is missing or is none")
    func unreadable() throws {
        var files = CertificateFiles(try mint.issue(["DNS:localhost"]))
        let key = files.key
        files.key = folder.path(of: "none.key")
        try expect(files, .missing, in: files.key, "cannot be read: No such file")
        files.key = folder.path
        try expect(files, .unreadable, in: folder.path, "is no regular file")
        files = CertificateFiles(certificate: "/nowhere/a.pem", key: key)
        try expect(files, .missing, in: "/nowhere/a.pem", "cannot be read")
    }

    @Test("tells damaged files from files that hold something else")
    func format() throws {
        let good = CertificateFiles(try mint.issue(["DNS:localhost"]))
        let text = try folder.write("hello\n", to: "text.pem")
        let torn = try folder.write(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", to: "torn.pem")
        var files = good
        files.certificate = text
        try expect(files, .format, in: text, "no certificate in PEM format")
        files.certificate = torn
        try expect(files, .format, in: torn, "certificate 1 in it is damaged")
        files = CertificateFiles(certificate: good.key, key: good.certificate)
        try expect(files, .format, in: good.key, "holds a private key")
        files = CertificateFiles(certificate: good.certificate, key: good.certificate)
        try expect(files, .format, in: good.certificate, "holds a certificate where")
        files.key = text
        try expect(files, .format, in: text, "no private key in PEM format")
    }

    @Test("says when a certificate has expired or is not valid yet")
    func validity() throws {
        let old = CertificateFiles(try mint.issue(["DNS:localhost"], days: -9 ... -3))
        try expect(old, .expired, in: old.certificate, "expired on 20")
        let young = CertificateFiles(try mint.issue(["DNS:localhost"], days: 2...5))
        try expect(young, .notYetValid, in: young.certificate, "is not valid before 20")
    }

    @Test("says whose certificate a wrong key would have to belong to")
    func mismatch() throws {
        let one = CertificateFiles(try mint.issue(["DNS:one.example"]))
        let two = CertificateFiles(try mint.issue(["DNS:two.example"]))
        try expect(
            CertificateFiles(certificate: one.certificate, key: two.key), .keyMismatch,
            in: two.key,
            "does not belong to the certificate in \(one.certificate), which is for one.example")
    }

    @Test("asks for no password")
    func password() throws {
        let files = CertificateFiles(try mint.issue(["DNS:localhost"], password: "secret"))
        try expect(files, .password, in: files.key, "protected with a password")
    }

    @Test("refuses weak keys, certificates without names, and those of clients")
    func unfit() throws {
        let weak = CertificateFiles(try mint.issue(["DNS:localhost"], key: .rsa(bits: 1024)))
        try expect(weak, .weak, in: weak.certificate, "a key of only 1024 bits")
        let unnamed = CertificateFiles(try mint.issue([]))
        try expect(unnamed, .names, in: unnamed.certificate, "no subjectAltName")
        let client = CertificateFiles(try mint.issue(["DNS:localhost"], usage: "clientAuth"))
        try expect(client, .purpose, in: client.certificate, "is not for a server")
    }

    @Test("a chain in order is accepted; one out of order or with a hole is explained")
    func chain() throws {
        let middle = try CertificateMint(name: "Middle", signedBy: mint, in: folder)
        let lower = try CertificateMint(name: "Lower", signedBy: middle, in: folder)
        let good = CertificateFiles(try lower.issue(["DNS:localhost"]))
        #expect(try ServerCertificate(good, now: wallSeconds()).warnings.isEmpty)
        let parts = try Self.certificates(
            in: String(decoding: folder.read("Lower-1.pem"), as: UTF8.self))
        #expect(parts.count == 3)
        var files = good
        files.certificate = try folder.write(parts[0] + parts[2] + parts[1], to: "swapped.pem")
        try expect(files, .chain, in: files.certificate, "number 3 signed number 1")
        files.certificate = try folder.write(parts[0] + parts[2], to: "hole.pem")
        try expect(
            files, .chain, in: files.certificate,
            "number 1 was signed by /CN=Lower, which is not in")
        files.certificate = try folder.write(parts[1] + parts[0] + parts[2], to: "late.pem")
        try expect(
            files, .chain, in: files.certificate, "the server's certificate is number 2 in it")
    }

    @Test("warns of a key that others may read")
    func permissions() throws {
        let files = CertificateFiles(try mint.issue(["DNS:localhost"]))
        let text = String(decoding: try folder.read("Test CA-1.key"), as: UTF8.self)
        let open = try folder.write(text, to: "open.key")
        let certificate = try ServerCertificate(
            CertificateFiles(certificate: files.certificate, key: open), now: wallSeconds())
        #expect(certificate.warnings.map(\.kind) == [.permissions])
        #expect(certificate.warnings.first?.file == open)
    }

    @Test("lists everything that is wrong with a listener at once")
    func everything() throws {
        let old = CertificateFiles(try mint.issue(["DNS:localhost"], days: -9 ... -3))
        let gone = CertificateFiles(certificate: "/nowhere/a.pem", key: "/nowhere/a.key")
        var settings = TLSServerSettings(certificates: [old, gone])
        settings.clientCA = old.key
        let errors = try #require(
            #expect(throws: CertificateErrors.self) {
                _ = try TLSServer(settings, tickets: TicketKeys())
            })
        #expect(errors.all.map(\.kind) == [.expired, .missing, .format])
    }

    private static func certificates(in text: String) throws -> [String] {
        let end = "-----END CERTIFICATE-----\n"
        return text.components(separatedBy: end).filter { !$0.isEmpty }.map { $0 + end }
    }
}

extension String {
    /// The text between separators.
    fileprivate func components(separatedBy separator: String) -> [String] {
        var parts: [String] = []
        var rest = self[...]
        while let range = rest.firstRange(of: separator) {
            parts.append(String(rest[..<range.lowerBound]))
            rest = rest[range.upperBound...]
        }
        return parts + [String(rest)]
    }
}
