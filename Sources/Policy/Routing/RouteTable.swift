/// Which route serves a request: the most specific one, never the first written.
///
/// In this order: exact host, wildcard host (the longer one first), no host; then exact path,
/// prefix (the longer one first); then with methods before without. A route that does not name the
/// request's method is passed over, and the search goes on with less specific ones. "/v1/*" covers
/// "/v1" too, as many backends serve both alike, and a weaker route for "/v1" would be a way round
/// (docs/decisions/0004-route-precedence.md).
///
/// A look-up costs the same for 10 routes and for 10,000: one hash look-up for each label of the
/// host and for each segment of the path that some route knows. It does not allocate.
public final class RouteTable: Sendable {
    public let routes: [Route]

    private let methods: MethodIndex
    private let hosts: SegmentIndex
    private let hostNodes: [SegmentTree.Node]
    private let paths: SegmentIndex
    private let pathNodes: [SegmentTree.Node]
    private let trees: [PathTree]
    private let levels: [RouteLevel]
    private let entries: [RouteEntry]

    /// Builds the table. Hosts and paths must be in normal form.
    /// - Throws: every pair of routes that tie.
    public init(_ routes: [Route]) throws(RouteConflict) {
        let seed = UInt64.random(in: .min ... .max)
        var builder = RouteTableBuilder(routes, seed: seed)
        try builder.add(routes)
        self.routes = routes
        methods = builder.methods
        (hostNodes, trees) = builder.resolvedHosts()
        (pathNodes, levels) = builder.resolvedPaths()
        hosts = SegmentIndex(builder.hosts.edges, seed: seed)
        paths = SegmentIndex(builder.paths.edges, seed: seed)
        entries = builder.entries
    }

    /// The index of the route for a request, or nil (404).
    ///
    /// - Parameters:
    ///   - host: Canonical: lower case, without port; empty when the request has none.
    ///   - path: Normalised, without query. A path that does not start with "/" has no route.
    ///   - method: As sent. HEAD follows GET. A method that is neither standard nor named by a route
    ///     gets the strictest of the routes that serve this host and path for any method (P8).
    public func match(host: Span<UInt8>, path: Span<UInt8>, method: Span<UInt8>) -> Int? {
        guard path.count > 0, path[0] == UInt8(ascii: "/") else { return nil }
        let method = methods.id(method)
        var strictest: RouteEntry?
        var tree = firstTree(for: host)
        while tree != SegmentTree.none {
            var number = firstLevel(for: path, below: trees[Int(tree)].root)
            while number != SegmentTree.none {
                let level = levels[Int(number)]
                for index in Int(level.start)..<Int(level.end) {
                    let entry = entries[index]
                    if !method.isStandard, entry.rank > strictest?.rank ?? 0 { strictest = entry }
                    if entry.method == .any {
                        if let strictest, strictest.rank > entry.rank {
                            return Int(strictest.route)
                        }
                        return Int(entry.route)
                    }
                    if entry.method == method { return Int(entry.route) }
                }
                number = level.next
            }
            tree = trees[Int(tree)].next
        }
        return nil
    }

    /// The most specific path tree for a host, `none` when no route serves it.
    private func firstTree(for host: Span<UInt8>) -> UInt32 {
        var node = hostNodes[0]
        var number: UInt32 = 0
        var end = host.count
        while end > 0, !node.isLeaf {
            var start = end
            while start > 0, host[start - 1] != UInt8(ascii: ".") { start -= 1 }
            guard let child = hosts.child(of: number, host.extracting(start..<end)) else { break }
            number = child
            node = hostNodes[Int(child)]
            if start == 0 { return node.whole }
            end = start - 1
        }
        return node.below
    }

    /// The most specific level for a path, `none` when no route of this tree covers it.
    private func firstLevel(for path: Span<UInt8>, below root: UInt32) -> UInt32 {
        var number = root
        var node = pathNodes[Int(root)]
        var start = 1
        while !node.isLeaf {
            var end = start
            while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
            guard let child = paths.child(of: number, path.extracting(start..<end)) else { break }
            number = child
            node = pathNodes[Int(child)]
            if end == path.count { return node.whole }
            start = end + 1
        }
        return node.below
    }
}
