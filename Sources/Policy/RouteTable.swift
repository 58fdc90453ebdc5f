/// Which route serves a request: the most specific one, never the first written (design: exact host, wildcard host,
/// no host; then exact path before prefix, longer prefix first; then with methods before without).
///
/// A look-up costs the same for 10 routes and for 10,000.
public final class RouteTable: Sendable {
    public let routes: [Route]

    /// Builds the table.
    /// - Throws: every pair of routes that tie.
    public init(_ routes: [Route]) throws(RouteConflict) {
        self.routes = routes
    }

    /// The index of the route for a request, or nil (404).
    ///
    /// - Parameters:
    ///   - host: Canonical: lower case, without port.
    ///   - path: Normalised, without query.
    ///   - method: As sent. HEAD follows GET.
    public func match(host: Span<UInt8>, path: Span<UInt8>, method: Span<UInt8>) -> Int? {
        nil
    }
}

/// Two routes that would serve the same requests.
public struct RouteConflict: Error, Sendable {
    /// Indices of the routes, lower first.
    public var pairs: [(Int, Int)]
}
