internal import Attestation
public import Configuration
public import Policy
public import Reactor

/// A configuration made ready to serve: checked text, resolved addresses, prepared verifier and
/// shares. Immutable; every loop holds the current one, and every request the one it began with.
public final class ServingConfiguration: Sendable {
    /// The configuration itself; indices in records refer to it.
    public let configuration: Configuration
    /// Addresses by upstream; empty while no name of it resolves.
    public let addresses: [[SocketAddress]]
    /// Which route serves what. Another configuration has another table, even if it says the same.
    public let table: RouteTable
    /// By index of the route.
    let routes: [ServedRoute]
    /// By index of the route.
    private let details: [RouteDetails]
    /// By index of the project.
    let projects: [Project]
    /// Judges tokens of these projects.
    let verifier: TokenVerifier
    /// By project.
    let fingerprints: [[ClientFingerprint]]
    let hasFingerprints: Bool
    /// A token that lives longer is a session token; seconds.
    let limitedUseLifetime: Int64
    /// How long an enforced request waits for a remote claim store, nanoseconds.
    let claimPatience: Int64
    /// The same for a monitored one (pitfall M1).
    let monitoredClaimPatience: Int64
    /// Requests may be logged or traced, so their text is kept.
    let logsAccess: Bool
    /// How requests are traced; nil: they are not.
    let tracing: RequestTracing?
    /// Certificates, ours and those of authorities.
    public let tls: ServedTLS
    /// Rate limits, with what every client has used of them.
    public let limits: RateLimits

    /// Event loops that the configuration asks for.
    public var workerCount: Int {
        let wanted = configuration.server.workers
        return wanted > 0 ? wanted : Syscalls.usableProcessors()
    }

    /// Prepares a configuration.
    ///
    /// - Parameter previous: Whose place it takes: limits that are the same go on as they are.
    public init(
        _ configuration: Configuration, addresses: [[SocketAddress]], tls: ServedTLS = .none,
        previous: ServingConfiguration? = nil
    ) {
        self.configuration = configuration
        self.tls = tls
        let limits = RateLimits(configuration, previous: previous?.limits)
        self.limits = limits
        self.addresses = addresses
        table = configuration.routes
        let storeDefault = configuration.replay.whenUnavailable
        let wishes = Set(
            configuration.upstreams.indices.filter { configuration.upstreams[$0].sendsForwarded })
        routes = table.routes.enumerated().map {
            ServedRoute(
                $1, index: $0, storeDefault: storeDefault,
                sendsForwarded: wishes.contains($1.upstream))
        }
        details = zip(table.routes, limits.routes).map(RouteDetails.init)
        projects = configuration.projects.map(\.project)
        verifier = TokenVerifier(projects: projects)
        fingerprints = configuration.projects.map(\.fingerprints)
        limitedUseLifetime = configuration.replay.limitedUseMaxLifetime.components.seconds
        claimPatience = configuration.replay.timeout.nanoseconds
        monitoredClaimPatience = configuration.replay.monitorPatience.nanoseconds
        tracing = configuration.tracing.map(RequestTracing.init)
        logsAccess = configuration.log.access != .off || tracing != nil
        hasFingerprints = fingerprints.contains { !$0.isEmpty }
    }

    /// The addresses of one of its upstreams.
    public func addresses(of upstream: Upstream) -> [SocketAddress] {
        let place = configuration.upstreams.firstIndex { $0.name == upstream.name }
        return place.flatMap { addresses.indices.contains($0) ? addresses[$0] : nil } ?? []
    }

    /// What is seldom asked of a route.
    func details(of route: ServedRoute) -> RouteDetails { details[route.index] }
}

/// What nearly every request asks of its route: a few bytes, so that thousands of routes that take
/// turns stay in the cache, and a request copies them instead of counting a reference.
struct ServedRoute: Sendable {
    private let place: UInt32
    private let upstreamPlace: UInt32
    /// Decides what happens to a request.
    let enforcement: Enforcement
    /// Decides about what the claim store said: its word counts for as much as `replay` says, even
    /// where it is about the token itself.
    let claimEnforcement: Enforcement
    /// The token's own field goes upstream.
    let forwardsToken: Bool
    /// The token of a WebSocket handshake may be one of its subprotocols.
    let takesProtocolTokens: Bool
    /// Preflights are answered here instead of forwarded.
    let answersPreflights: Bool
    /// The upstream wants `Forwarded`.
    let sendsForwarded: Bool
    /// The route lists neither projects nor apps.
    let acceptsEveryApp: Bool
    /// Where in a request's way the route's limit stands.
    let limitStep: LimitStep

    /// Where a rate limit is looked at.
    enum LimitStep: UInt8 {
        /// There is none.
        case none
        /// Before anything is known of the token: that costs more than the limit.
        case beforeToken
        /// Behind the token, whose app it goes by.
        case afterToken
    }

    /// The route's place in the configuration.
    var index: Int { Int(place) }
    /// Each verified token is good for one request.
    var claimsTokens: Bool { enforcement.replay != .off }
    /// How strictly tokens are looked at.
    var mode: Route.Mode { enforcement.appCheck }
    /// Index of the upstream.
    var upstream: Int { Int(upstreamPlace) }

    /// Prepares a route. `storeDefault` is `when_unavailable` of `[replay]`.
    init(_ route: Route, index: Int, storeDefault: WhenUnavailable, sendsForwarded: Bool) {
        // The table numbers routes by 32 bits too, and upstreams are as many lines of the file.
        place = UInt32(index)
        upstreamPlace = UInt32(route.upstream)
        let enforcement = route.enforcement(storeDefault: storeDefault)
        self.enforcement = enforcement
        claimEnforcement = enforcement.ofClaims
        forwardsToken = route.forwardToken
        self.sendsForwarded = sendsForwarded
        takesProtocolTokens = route.webSocketToken == .protocol
        acceptsEveryApp = route.projects == nil && route.apps == nil
        answersPreflights = route.cors?.answerPreflights ?? false
        limitStep = route.rateLimit.map { $0.key == .app ? .afterToken : .beforeToken } ?? .none
    }
}

/// What only some requests ask of their route.
final class RouteDetails: Sendable {
    /// The route as configured.
    let route: Route
    /// Who is enforced; nil where the share decides nothing.
    let share: EnforcedShare?
    /// What `cors` adds to answers of our own; nil without `cors`.
    let cors: CORSFields?
    /// How many requests it takes of one client; nil for any number.
    let limit: RouteLimit?

    /// Prepares a route.
    init(_ route: Route, _ limit: RouteLimit?) {
        self.limit = limit
        self.route = route
        let isPartial = route.mode == .enforce && route.enforcedShare < EnforcedShare.everybody
        share = isPartial ? route.share : nil
        cors = route.cors.map { CORSFields(route, $0) }
    }
}
