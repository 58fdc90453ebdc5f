internal import COpenSSL
internal import Glibc

/// Owns one reference to an X.509 certificate.
///
/// Safe to be Sendable: never changed after `init` (what OpenSSL remembers about its extensions is
/// behind OpenSSL's own lock), and references are counted atomically.
final class Certificate: @unchecked Sendable {
    /// Owned; freed in `deinit`.
    let pointer: OpaquePointer

    /// Takes over one reference.
    init(owning pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        X509_free(pointer)
    }

    /// Reads every certificate of a PEM file.
    ///
    /// - Throws: `configuration`, naming the file and, where only one certificate is bad, its
    ///   place.
    static func read(file path: String) throws(TLSError) -> [Certificate] {
        ErrorQueue.clear()
        guard let file = BIO_new_file(path, "r") else {
            // The file error comes first, "no such file" in OpenSSL's own words behind it.
            let reason = ErrorQueue.drain().prefix { $0 != "(" }
            throw TLSError(.configuration, "cannot read \(path): \(reason.trimmingSpaces)")
        }
        defer { BIO_free(file) }
        let (certificates, damage) = read(file)
        if let damage {
            throw TLSError(
                .configuration,
                "certificate \(certificates.count + 1) in \(path) is damaged: \(damage)")
        }
        if certificates.isEmpty {
            throw TLSError(.configuration, "there is no certificate in PEM format in \(path)")
        }
        return certificates
    }

    /// Reads every certificate of a PEM file that is in memory; there may be none.
    static func read(_ file: IdentityFile) throws(CertificateError) -> [Certificate] {
        let (certificates, damage) = withBIO(of: file.bytes) { read($0) } ?? ([], "no memory")
        if let damage {
            throw CertificateError(
                .format, file.path,
                "certificate \(certificates.count + 1) in it is damaged: \(damage)",
                remedy: "restore the file")
        }
        return certificates
    }

    /// Reads every certificate in PEM format, up to one that is damaged.
    static func read(_ bio: OpaquePointer) -> (certificates: [Certificate], damage: String?) {
        ErrorQueue.clear()
        var certificates: [Certificate] = []
        while let pointer = PEM_read_bio_X509_AUX(bio, nil, nil, nil) {
            certificates.append(Certificate(owning: pointer))
        }
        let isAtEnd = ErrorQueue.latestReason == PEM_R_NO_START_LINE
        let reason = ErrorQueue.drain()
        return (certificates, isAtEnd ? nil : reason)
    }

    /// The host names and addresses that a certificate is for, made safe for a log line.
    ///
    /// - Parameter pointer: A certificate that the caller keeps alive.
    /// - Parameter limit: More are left out.
    static func names(of pointer: OpaquePointer, limit: Int32 = 8) -> [String] {
        guard let list = X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil) else {
            return []
        }
        // Safe: with this NID OpenSSL returns a GENERAL_NAMES stack that is ours to free.
        let names = OpaquePointer(list)
        defer { GENERAL_NAMES_free(names) }
        var texts: [String] = []
        for index in 0..<max(0, min(OPENSSL_sk_num(names), limit)) {
            guard let element = OPENSSL_sk_value(names, index) else { continue }
            let name = element.assumingMemoryBound(to: GENERAL_NAME.self).pointee
            switch name.type {
            case GEN_DNS: texts.append(printable(bytes(of: name.d.dNSName)))
            case GEN_IPADD: texts.append(address(bytes(of: name.d.iPAddress)))
            default: continue
            }
        }
        return texts
    }

    /// The distinguished name of whoever signed a certificate, such as "/O=Example/CN=Root".
    static func issuer(of pointer: OpaquePointer) -> String {
        text(of: X509_get_issuer_name(pointer))
    }

    /// The distinguished name of whom a certificate is about.
    static func subject(of pointer: OpaquePointer) -> String {
        text(of: X509_get_subject_name(pointer))
    }

    private static func text(of name: OpaquePointer?) -> String {
        var text = [CChar](repeating: 0, count: 200)
        guard let name, X509_NAME_oneline(name, &text, Int32(text.count)) != nil else {
            return "?"
        }
        return printable(text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
    }

    /// The last and the first day of a certificate's life, as "2026-11-30".
    static func validity(of pointer: OpaquePointer) -> (from: String, to: String) {
        (day(X509_get0_notBefore(pointer)), day(X509_get0_notAfter(pointer)))
    }

    /// The first and the last second of a certificate's life, since 1970.
    static func validitySeconds(of pointer: OpaquePointer) -> (from: Int64, to: Int64) {
        (seconds(X509_get0_notBefore(pointer)), seconds(X509_get0_notAfter(pointer)))
    }

    /// Seconds since 1970; 0 for what is no time.
    static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64 {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return 0 }
        return Int64(timegm(&parts))
    }

    /// A time as a day, such as "2026-11-30".
    static func day(_ time: UnsafePointer<ASN1_TIME>?) -> String {
        var parts = tm()
        guard let time, ASN1_TIME_to_tm(time, &parts) == 1 else { return "?" }
        let pad = { (number: Int32) in number < 10 ? "0\(number)" : "\(number)" }
        return "\(parts.tm_year &+ 1900)-\(pad(parts.tm_mon &+ 1))-\(pad(parts.tm_mday))"
    }

    private static func bytes(of string: UnsafeMutablePointer<ASN1_STRING>?) -> [UInt8] {
        guard let string, let start = ASN1_STRING_get0_data(string) else { return [] }
        return Array(UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(string))))
    }

    private static func address(_ bytes: [UInt8]) -> String {
        if bytes.count == 4 { return bytes.map { "\($0)" }.joined(separator: ".") }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard bytes.count == 16, inet_ntop(AF_INET6, bytes, &text, socklen_t(text.count)) != nil
        else { return "?" }
        return printable(text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
    }

    /// A peer chose these bytes: keep them short, and out of any terminal's reach.
    private static func printable(_ bytes: [UInt8]) -> String {
        let safe = bytes.prefix(120).map { 0x20...0x7E ~= $0 ? $0 : UInt8(ascii: "?") }
        return String(decoding: safe, as: UTF8.self)
    }
}

extension Substring {
    fileprivate var trimmingSpaces: String {
        var text = self
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
