internal import Attestation
internal import Configuration
internal import Policy

/// The names of a configuration as they look in a log line: rendered once, when it is adopted,
/// and copied for each request.
struct ConfigurationNames {
    /// The format that the names were escaped for.
    let format: Log.Format
    private let routes: [[UInt8]]
    /// By project, then by app.
    private let apps: [[[UInt8]]]
    private let otherApp: [UInt8]
    private let upstreams: [[UInt8]]

    /// Escapes what lines of this configuration need.
    init(_ configuration: Configuration) {
        let format = configuration.log.format
        self.format = format
        routes = configuration.routes.routes.map { LineWriter.rendering($0.name, format) }
        apps = configuration.projects.map { source in
            source.project.apps.map { LineWriter.rendering($0.alias, format) }
        }
        otherApp = LineWriter.rendering("other", format)
        upstreams = configuration.upstreams.map { LineWriter.rendering($0.name, format) }
    }

    /// The name of a route, or nil when none was chosen.
    @inline(__always)
    func route(_ index: Int?) -> [UInt8]? {
        guard let index, routes.indices.contains(index) else { return nil }
        return routes[index]
    }

    /// The alias of an app; `other` for one that has none.
    @inline(__always)
    func app(_ index: AppIndex?) -> [UInt8] {
        guard let index, apps.indices.contains(index.project),
            apps[index.project].indices.contains(index.app)
        else { return otherApp }
        return apps[index.project][index.app]
    }

    /// The name of an upstream, or nil when none was asked.
    @inline(__always)
    func upstream(_ index: Int?) -> [UInt8]? {
        guard let index, upstreams.indices.contains(index) else { return nil }
        return upstreams[index]
    }
}
