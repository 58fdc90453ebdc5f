internal import Attestation
public import Configuration
internal import Policy
public import Reactor

/// A configuration made ready to serve: checked text, resolved addresses, prepared verifier and
/// shares. Immutable; every loop holds the current one, and every request the one it began with.
public final class ServingConfiguration: Sendable {
    public let configuration: Configuration
    /// Addresses by upstream; empty while no name of it resolves.
    public let addresses: [[SocketAddress]]
    let table: RouteTable
    let routes: [ServedRoute]
    let projects: [Project]
    let verifier: TokenVerifier
    /// By project.
    let fingerprints: [[ClientFingerprint]]

    /// Event loops that the configuration asks for.
    public var workerCount: Int {
        let wanted = configuration.server.workers
        return wanted > 0 ? wanted : Syscalls.usableProcessors()
    }

    public init(_ configuration: Configuration, addresses: [[SocketAddress]]) {
        self.configuration = configuration
        self.addresses = addresses
        table = configuration.routes
        routes = table.routes.enumerated().map { ServedRoute($1, index: $0) }
        projects = configuration.projects.map(\.project)
        verifier = TokenVerifier(projects: projects)
        fingerprints = configuration.projects.map(\.fingerprints)
    }
}

/// A route with everything that can be prepared before a request comes. An object, so that a
/// request holds one reference and copies nothing.
final class ServedRoute: Sendable {
    let route: Route
    let index: Int
    let mode: Route.Mode
    let upstream: Int
    let forwardsToken: Bool
    /// Who is enforced; nil where the share decides nothing.
    let share: EnforcedShare?
    let cors: CORSFields?
    let answersPreflights: Bool

    init(_ route: Route, index: Int) {
        self.route = route
        self.index = index
        mode = route.mode
        upstream = route.upstream
        forwardsToken = route.forwardToken
        let isPartial = route.mode == .enforce && route.enforcedShare < EnforcedShare.everybody
        share = isPartial ? route.share : nil
        cors = route.cors.map { CORSFields(route, $0) }
        answersPreflights = route.cors?.answerPreflights ?? false
    }
}
