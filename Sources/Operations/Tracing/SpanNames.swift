internal import Configuration
internal import Policy

/// The names of a configuration as spans have them: escaped and quoted once, when it is adopted.
struct SpanNames {
    /// Routes, apps and upstreams.
    let names: ConfigurationNames
    /// Paths of routes, for `http.route`.
    private let paths: [[UInt8]]

    init(_ configuration: Configuration) {
        var asJSON = configuration
        asJSON.log.format = .json
        names = ConfigurationNames(asJSON)
        paths = configuration.routes.routes.map { LineWriter.rendering($0.path, .json) }
    }

    /// The path of a route as configured, in quotes; nil when none was chosen.
    func path(_ index: Int?) -> [UInt8]? {
        guard let index, paths.indices.contains(index) else { return nil }
        return paths[index]
    }
}
