internal import Configuration

/// Where a running proxy reads its configuration from.
struct ConfigurationSource: Sendable {
    /// For the log.
    let name: String
    /// Reads and checks it: the configuration, or every mistake as text.
    let load: @Sendable () -> (Configuration?, mistakes: [String])

    /// A file, read anew at each reload.
    static func file(_ path: String) -> ConfigurationSource {
        ConfigurationSource(name: path) {
            let (configuration, diagnostics) = Configuration.load(file: path)
            return (configuration, diagnostics.map(\.description))
        }
    }
}
