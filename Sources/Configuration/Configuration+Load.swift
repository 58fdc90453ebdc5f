extension Configuration {
    /// Reads and checks a configuration file; see `load(text:fileName:surroundings:)`. A file that
    /// cannot be read is a diagnostic too.
    public static func load(
        file: String, surroundings: Surroundings = .process
    ) -> (configuration: Configuration?, diagnostics: [Diagnostic]) {
        guard let bytes = surroundings.file(file) else {
            let log = DiagnosticLog(file: file, text: "")
            log.error("the file cannot be read", at: nil)
            return (nil, log.sorted())
        }
        return load(bytes: bytes, fileName: file, surroundings: surroundings)
    }

    /// Reads and checks a configuration file's text.
    ///
    /// - Parameters:
    ///   - text: TOML 1.0, at most 1 MiB.
    ///   - fileName: Where the text comes from; relative paths in it are relative to this file's
    ///     folder.
    ///   - surroundings: Where the secrets are read that the file refers to.
    /// - Returns: The configuration, or nil when any diagnostic is an error; and every diagnostic,
    ///   in file order.
    public static func load(
        text: String, fileName: String, surroundings: Surroundings = .process
    ) -> (configuration: Configuration?, diagnostics: [Diagnostic]) {
        load(bytes: Array(text.utf8), fileName: fileName, surroundings: surroundings)
    }

    /// Reads and checks a configuration file's bytes, which need not be UTF-8; see
    /// `load(text:fileName:)`.
    public static func load(
        bytes: [UInt8], fileName: String, surroundings: Surroundings = .process
    ) -> (configuration: Configuration?, diagnostics: [Diagnostic]) {
        let text = String(decoding: bytes, as: UTF8.self)
        let log = DiagnosticLog(file: fileName, text: text)
        var configuration: Configuration?
        if let document = SyntaxRecovery.parse(bytes, log: log) {
            var loader = ConfigurationLoader(
                log: log, fileName: fileName, surroundings: surroundings)
            configuration = loader.load(document.root)
        }
        return (log.hasErrors ? nil : configuration, log.sorted())
    }
}
