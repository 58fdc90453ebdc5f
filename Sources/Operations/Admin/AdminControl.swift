/// The process behind the admin listener: what is going on in it, and what can be changed.
public protocol AdminControl: Sendable {
    /// What is going on. Returns also when an event loop does not answer.
    func status() async -> StatusReport

    /// Takes a server out of service, or gives it requests again.
    ///
    /// - Parameters:
    ///   - server: As the configuration writes it, or one of its addresses.
    ///   - upstream: The name in the configuration.
    ///   - client: Who asks, for the log.
    func setDraining(_ isDraining: Bool, server: String, upstream: String, client: String) async
        -> ServerChangeResult
}

/// What became of a wish to drain a server, or not to.
public enum ServerChangeResult: Sendable {
    case done(ServerChange)
    /// There is no such upstream, but these.
    case unknownUpstream(known: [String])
    /// The upstream has no such server, but these.
    case unknownServer(known: [String])
}

/// The answer to `POST /upstreams/NAME/servers/ADDRESS/drain`.
public struct ServerChange: Sendable, Codable, Equatable {
    /// What a server can be asked to be.
    public enum State: String, Sendable, Codable {
        case draining, ready
    }

    public var upstream: String
    /// As it was named in the request.
    public var server: String
    /// What that means now; none while a name is not found.
    public var addresses: [String]
    public var state: State
    /// It was another one before.
    public var isChanged: Bool
    /// Requests that are under way on it.
    public var inFlight: Int
    /// Addresses of the upstream that get requests.
    public var serversLeft: Int
    /// Event loops that did not say that they know; they will when they go on.
    public var silentLoops: Int
    /// What an operator should know.
    public var warning: String?

    enum CodingKeys: String, CodingKey {
        case upstream, server, addresses, state, warning
        case isChanged = "changed"
        case inFlight = "in_flight"
        case serversLeft = "servers_left"
        case silentLoops = "silent_loops"
    }

    public init(
        upstream: String, server: String, addresses: [String], state: State, isChanged: Bool,
        inFlight: Int, serversLeft: Int, silentLoops: Int, warning: String? = nil
    ) {
        self.upstream = upstream
        self.server = server
        self.addresses = addresses
        self.state = state
        self.isChanged = isChanged
        self.inFlight = inFlight
        self.serversLeft = serversLeft
        self.silentLoops = silentLoops
        self.warning = warning
    }
}
