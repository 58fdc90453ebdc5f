/// The route that serves a request, and how it was found.
public struct RouteMatch: Sendable, Equatable {
    /// Why this route, for `explain`.
    public enum Reason: String, Sendable, CaseIterable {
        /// It is the most specific one.
        case mostSpecific = "most_specific"
        /// The method is unknown, and this is the strictest route that any method of this host and
        /// path gets (pitfall P8).
        case unknownMethod = "unknown_method"
        /// The path differs from the route's in letter case, slashes or path parameters only, and
        /// the route is stricter than the one that the path as written would get (pitfall P2).
        case lookAlike = "look_alike"
    }

    /// Index of the route.
    public let route: Int
    /// Why this one.
    public let reason: Reason

    public init(route: Int, reason: Reason) {
        self.route = route
        self.reason = reason
    }
}
