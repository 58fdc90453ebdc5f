internal import Attestation
internal import Configuration
internal import Policy
internal import Proxy

/// Where the counters and names of one configuration are, by the indices that its records use.
///
/// A table belongs to one loop. It finds counters at their first use, so that 10,000 routes of
/// which ten are used cost what ten cost.
final class RecorderTable {
    /// The label of requests that no route served.
    static let noRoute = "none"
    /// The label of a verified app that has no alias.
    static let otherApp = "other"

    /// A route with the app counters found so far.
    final class RouteSlot {
        /// Where its requests are counted.
        let counters: RouteCounters
        /// In the order of `aliases`; the last ones are those of `other`.
        fileprivate var apps: [VerdictCells?]

        fileprivate init(_ counters: RouteCounters, apps: Int) {
            self.counters = counters
            self.apps = Array(repeating: nil, count: apps)
        }
    }

    /// Which requests get a line.
    let access: Log.Access
    /// Names, escaped for the log.
    let names: ConfigurationNames
    private let metrics: LoopMetrics
    private let routeTable: RouteTable
    private let upstreamNames: [String]
    private let aliases: [String]
    /// Where the apps of a project start in `aliases`; one more entry for the end.
    private let firstApp: [Int]
    /// One for each route, and the last for no route.
    private var routes: [RouteSlot?]
    private var upstreams: [Histogram?]

    /// Prepares what records of this configuration need.
    init(_ configuration: Configuration, metrics: LoopMetrics) {
        self.metrics = metrics
        access = configuration.log.access
        names = ConfigurationNames(configuration)
        routeTable = configuration.routes
        upstreamNames = configuration.upstreams.map(\.name)
        var aliases: [String] = []
        var firstApp = [0]
        for source in configuration.projects {
            aliases += source.project.apps.map(\.alias)
            firstApp.append(aliases.count)
        }
        self.aliases = aliases + [Self.otherApp]
        self.firstApp = firstApp
        routes = Array(repeating: nil, count: routeTable.routes.count + 1)
        upstreams = Array(repeating: nil, count: upstreamNames.count)
    }

    /// Whether records of `serving` use this table's indices. Each configuration that is read
    /// has a route table of its own.
    @inline(__always)
    func serves(_ serving: ServingConfiguration) -> Bool {
        serving.table === routeTable
    }

    /// The name of a route; `none` when there is none.
    func routeName(_ index: Int?) -> String {
        guard let index, routeTable.routes.indices.contains(index) else { return Self.noRoute }
        return routeTable.routes[index].name
    }

    /// The counters of a route, or of `none`.
    @inline(__always)
    func route(_ index: Int?) -> RouteSlot {
        let last = routes.count - 1
        let place = index.flatMap { (0..<last).contains($0) ? $0 : nil } ?? last
        if let found = routes[place] { return found }
        let slot = RouteSlot(metrics.route(routeName(index)), apps: aliases.count)
        routes[place] = slot
        return slot
    }

    /// The cells of an app on a route.
    @inline(__always)
    func cells(of app: AppIndex?, on route: RouteSlot) -> VerdictCells {
        let place = place(of: app)
        if let found = route.apps[place] { return found }
        let cells = route.counters.app(aliases[place])
        route.apps[place] = cells
        return cells
    }

    /// The durations of an upstream.
    @inline(__always)
    func duration(of index: Int) -> Histogram? {
        guard upstreams.indices.contains(index) else { return nil }
        if let found = upstreams[index] { return found }
        let histogram = metrics.upstream(upstreamNames[index])
        upstreams[index] = histogram
        return histogram
    }

    /// The place of an app among a slot's; the last one for an app without an alias.
    private func place(of app: AppIndex?) -> Int {
        let other = aliases.count - 1
        guard let app, app.app >= 0, (0..<(firstApp.count - 1)).contains(app.project) else {
            return other
        }
        let place = firstApp[app.project].addingReportingOverflow(app.app)
        return !place.overflow && place.partialValue < firstApp[app.project + 1]
            ? place.partialValue : other
    }
}
