/// Which route serves a request: the most specific one, never the first written.
///
/// In this order: exact host, wildcard host (the longer one first), no host; then exact path,
/// prefix (the longer one first); then with methods before without. A route that does not name the
/// request's method is passed over, and the search goes on with less specific ones. "/v1/*" covers
/// "/v1" too.
///
/// Two spellings that a backend may take for something else never get a weaker route than what they
/// may be taken for: unknown methods, and paths that look like a stricter route's
/// (docs/decisions/0020-route-choice.md).
///
/// A look-up costs the same for 10 routes and for 10,000: one hash look-up for each label of the
/// host and for each segment of the path that some route knows. It does not allocate.
public final class RouteTable: Sendable {
    /// In the order of the configuration.
    public let routes: [Route]
    /// Who is enforced on each route.
    public let shares: [EnforcedShare]
    /// What each route's `cors` adds to answers of our own.
    public let cors: [CORSFields?]

    private let methods: MethodIndex
    private let hosts: SegmentIndex
    private let hostRoot: SegmentTree.Position
    private let paths: SegmentIndex
    private let trees: [PathTree]
    private let entries: [RouteEntry]
    /// The rank of the strictest route: nothing can be stricter, so nothing else need be looked
    /// for.
    private let highestRank: UInt32
    /// Every route's path is its own folded form, so only other paths can look like one.
    private let isFolded: Bool

    /// Builds the table. Hosts and paths must be in normal form.
    /// - Throws: the routes that tie.
    public init(_ routes: [Route]) throws(RouteConflict) {
        let seed = UInt64.random(in: .min ... .max)
        var builder = RouteTableBuilder(routes, seed: seed)
        try builder.add(routes)
        self.routes = routes
        shares = routes.map(\.share)
        cors = routes.map { route in route.cors.map { CORSFields(route, $0) } }
        methods = builder.methods
        let (hostNodes, bareTrees) = builder.resolvedHosts()
        let (pathNodes, entries) = builder.resolvedPaths()
        hostRoot = SegmentTree.Position(number: 0, node: hostNodes[0])
        trees = bareTrees.map { tree in
            var tree = tree
            tree.root.node = pathNodes[Int(tree.root.number)]
            tree.foldedRoot.node = pathNodes[Int(tree.foldedRoot.number)]
            return tree
        }
        hosts = SegmentIndex(builder.hosts.edges, nodes: hostNodes, seed: seed)
        paths = SegmentIndex(builder.paths.edges, nodes: pathNodes, seed: seed)
        self.entries = entries
        highestRank = entries.map(\.rank).max() ?? 0
        isFolded = routes.allSatisfy { PathFolding.isFolded(Array($0.path.utf8).span) }
    }

    /// The index of the route for a request, or nil (404).
    ///
    /// - Parameters:
    ///   - host: Canonical: lower case, without port; empty when the request has none.
    ///   - path: Normalised, without query. A path that does not start with "/" has no route.
    ///   - method: As sent. HEAD follows GET.
    public func match(host: Span<UInt8>, path: Span<UInt8>, method: Span<UInt8>) -> Int? {
        find(host: host, path: path, method: method)?.route
    }

    /// As `match`, and says why.
    public func find(host: Span<UInt8>, path: Span<UInt8>, method: Span<UInt8>) -> RouteMatch? {
        guard path.count > 0, path[0] == UInt8(ascii: "/") else { return nil }
        let method = methods.id(method)
        let first = firstTree(for: host)
        var tree = first
        // What a more specific host has for other methods counts for an unknown one.
        var strictest: RouteEntry?
        while tree != SegmentTree.none {
            let start = firstEntry(for: path, below: trees[Int(tree)].root)
            if let found = search(from: start, method, &strictest) {
                return stricter(than: found, in: tree, from: first, path, method)
            }
            tree = trees[Int(tree)].next
        }
        return nil
    }

    /// What a search comes to.
    private struct Found {
        /// The most specific entry for the method.
        var entry: RouteEntry
        /// The strictest entry before it when the method is unknown.
        var strictest: RouteEntry?
        var winner: RouteEntry {
            guard let strictest, strictest.rank > entry.rank else { return entry }
            return strictest
        }
    }

    /// The first entry for a method, from one on to less specific ones.
    @inline(__always)
    private func search(
        from start: UInt32, _ method: MethodIndex.ID, _ strictest: inout RouteEntry?
    ) -> Found? {
        var number = start
        while number != SegmentTree.none {
            let entry = entries[Int(number)]
            if entry.method == .any {
                return Found(entry: entry, strictest: strictest)
            }
            if entry.method == method {
                return Found(entry: entry, strictest: nil)
            }
            if !method.isStandard, entry.rank > strictest?.rank ?? 0 { strictest = entry }
            number = entry.next
        }
        return nil
    }

    /// What was found, or a stricter route that the path may be taken for.
    @inline(__always)
    private func stricter(
        than found: Found, in last: UInt32, from first: UInt32, _ path: Span<UInt8>,
        _ method: MethodIndex.ID
    ) -> RouteMatch {
        let best = found.winner
        let reason: RouteMatch.Reason =
            best.route == found.entry.route ? .mostSpecific : .unknownMethod
        guard best.rank < highestRank, !isFolded || !PathFolding.isFolded(path) else {
            return RouteMatch(route: Int(best.route), reason: reason)
        }
        var tree = first
        var strictest: RouteEntry?
        while tree != SegmentTree.none {
            let start = firstFoldedEntry(for: path, below: trees[Int(tree)].foldedRoot)
            if let other = search(from: start, method, &strictest) {
                let candidate = other.winner
                // What was written for this very path, or for as long a part of it, stands.
                guard candidate.rank > best.rank, candidate.isMoreSpecific(than: found.entry)
                else { break }
                return RouteMatch(route: Int(candidate.route), reason: .lookAlike)
            }
            if tree == last { break }
            tree = trees[Int(tree)].next
        }
        return RouteMatch(route: Int(best.route), reason: reason)
    }

    /// The most specific path tree for a host, `none` when no route serves it.
    private func firstTree(for host: Span<UInt8>) -> UInt32 {
        var position = hostRoot
        var end = host.count
        while end > 0, !position.node.isLeaf {
            var start = end
            while start > 0, host[start - 1] != UInt8(ascii: ".") { start -= 1 }
            let label = host.extracting(start..<end)
            guard let child = hosts.child(of: position.number, label) else { break }
            position = child
            if start == 0 { return position.node.whole }
            end = start - 1
        }
        return position.node.below
    }

    /// The most specific entry for a path, `none` when no route of this tree covers it.
    private func firstEntry(for path: Span<UInt8>, below root: SegmentTree.Position) -> UInt32 {
        var position = root
        var start = 1
        while !position.node.isLeaf {
            let end = segmentEnd(in: path, from: start)
            let segment = path.extracting(start..<end)
            guard let child = paths.child(of: position.number, segment) else { break }
            position = child
            if end == path.count { return position.node.whole }
            start = end + 1
        }
        return position.node.below
    }

    /// As `firstEntry`, for the folded form of a path.
    private func firstFoldedEntry(
        for path: Span<UInt8>, below root: SegmentTree.Position
    ) -> UInt32 {
        var position = root
        var start = 1
        while start < path.count {
            let end = segmentEnd(in: path, from: start)
            let nameEnd = PathFolding.nameEnd(in: path, start..<end)
            if nameEnd > start {
                let name = path.extracting(start..<nameEnd)
                guard !position.node.isLeaf,
                    let child = paths.child(of: position.number, folding: name)
                else { return position.node.below }
                position = child
            }
            start = end + 1
        }
        return position.node.whole
    }

    @inline(__always)
    private func segmentEnd(in path: Span<UInt8>, from start: Int) -> Int {
        var end = start
        while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
        return end
    }
}
