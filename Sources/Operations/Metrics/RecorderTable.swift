internal import Attestation
internal import Configuration
internal import Policy
internal import Proxy

/// The numbers and names of one configuration's routes and apps, by the indices that its records
/// use.
///
/// A table belongs to one loop. It asks for numbers at their first use, so that 10,000 routes of
/// which ten are used cost what ten cost.
final class RecorderTable {
    /// The label of requests that no route served.
    static let noRoute = "none"
    /// The label of a verified app that has no alias, and of requests without a verified app.
    static let otherApp = "other"

    /// In place of a number that nobody asked for yet.
    private static let unnumbered = UInt32.max

    /// Which requests get a line.
    let access: Log.Access
    /// Names, escaped for the log.
    let names: ConfigurationNames
    /// The same for spans; made when there is one.
    private(set) lazy var spanNames = SpanNames(configuration)
    private let configuration: Configuration
    private let metrics: LoopMetrics
    private let routeTable: RouteTable
    private let upstreamNames: [String]
    private let aliases: [String]
    /// Where the apps of a project start in `aliases`; one more entry for the end.
    private let firstApp: [Int]
    /// One for each route, and the last for no route.
    private var routes: [UInt32]
    /// In the order of `aliases`.
    private var apps: [UInt32]
    private var upstreams: [Histogram?]
    /// By route; empty until a limit has something to count.
    private var rateLimits: [WordCounters<RateLimitEvent>?] = []

    /// Prepares what records of this configuration need.
    init(_ configuration: Configuration, metrics: LoopMetrics) {
        self.metrics = metrics
        self.configuration = configuration
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
        apps = Array(repeating: Self.unnumbered, count: self.aliases.count)
        routes = Array(repeating: Self.unnumbered, count: routeTable.routes.count + 1)
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

    /// The number of a route, or of `none`.
    @inline(__always)
    func route(_ index: Int?) -> UInt32 {
        let last = routes.count - 1
        let place = index.flatMap { (0..<last).contains($0) ? $0 : nil } ?? last
        let found = routes[place]
        if found != Self.unnumbered { return found }
        let number = metrics.route(routeName(index))
        routes[place] = number
        return number
    }

    /// The number of an app's label.
    @inline(__always)
    func app(_ app: AppIndex?) -> UInt32 {
        let place = place(of: app)
        let found = apps[place]
        if found != Self.unnumbered { return found }
        let number = metrics.app(aliases[place])
        apps[place] = number
        return number
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

    /// What the rate limit of a route did.
    func rateLimitEvents(of index: Int?) -> WordCounters<RateLimitEvent>? {
        guard let index, routeTable.routes.indices.contains(index) else { return nil }
        if rateLimits.isEmpty {
            rateLimits = Array(repeating: nil, count: routeTable.routes.count)
        }
        if let found = rateLimits[index] { return found }
        let events = metrics.rateLimitEvents(routeTable.routes[index].name)
        rateLimits[index] = events
        return events
    }

    /// The place of an app in `aliases`; the last one for an app without an alias.
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
