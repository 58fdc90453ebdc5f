/// Routes that would serve the same requests: same host, same path, and a method in common or both
/// without methods.
public struct RouteConflict: Error, Sendable {
    /// Indices of the routes, lower first; each pair once, in ascending order. Of several routes
    /// that tie, each with the first one.
    public var pairs: [(Int, Int)]
}
