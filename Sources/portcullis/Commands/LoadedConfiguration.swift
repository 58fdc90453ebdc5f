internal import Configuration

/// A configuration file that was read and found good, after every diagnostic was shown.
struct LoadedConfiguration {
    let value: Configuration

    /// Nil when there is an error; the console knows then what is wrong.
    init?(_ file: String, _ console: Console) {
        let (configuration, diagnostics) = Configuration.load(
            file: file, surroundings: console.surroundings)
        for diagnostic in diagnostics { console.complain(diagnostic.description) }
        guard let configuration else {
            let errors = diagnostics.count { $0.severity == .error }
            console.complain("\(file): \(errors) \(errors == 1 ? "error" : "errors")")
            return nil
        }
        value = configuration
    }
}
