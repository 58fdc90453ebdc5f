/// Looks at files before anything is made of them: for `check`, where nothing is served.
extension CertificateError {
    /// What is wrong with a PEM file of authorities; nil when it can be used.
    public static func inAuthorities(_ path: String) -> CertificateError? {
        do throws(CertificateError) {
            _ = try Authorities(try IdentityFile(path))
            return nil
        } catch {
            return error
        }
    }

    /// What is wrong with the certificate and key that we show to servers; nil when they can be
    /// used.
    ///
    /// - Parameter now: Seconds since 1970.
    public static func inClient(_ files: CertificateFiles, now: Int64) -> CertificateError? {
        do throws(CertificateError) {
            let chain = try CertificateChain(try IdentityFile(files.certificate))
            let key = try PrivateKey.read(try IdentityFile(files.key))
            try chain.checkClient(key, in: files.key, at: now)
            return nil
        } catch {
            return error
        }
    }
}

extension CertificateChain {
    /// Whether a client can prove with it who it is.
    ///
    /// - Parameter now: Seconds since 1970.
    func checkClient(
        _ key: PrivateKey, in keyPath: String, at now: Int64
    ) throws(CertificateError) {
        try check(key, in: keyPath)
        try checkOrder()
        try checkValidity(at: now)
        try checkStrength()
    }
}
