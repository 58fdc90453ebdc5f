/// The routes of one host, or of none.
struct PathTree: Sendable {
    /// Root of its paths.
    var root: UInt32
    /// The tree to search when this one has no match: the next less specific host.
    var next: UInt32
}

/// The routes of one path of one host, exact or prefix.
struct RouteLevel: Sendable {
    var start: UInt32 = 0
    var end: UInt32 = 0
    /// The next less specific path of the same host.
    var next: UInt32 = SegmentTree.none
}

/// One method of one route.
struct RouteEntry: Sendable {
    var method: MethodIndex.ID
    var route: UInt32
    /// The route's place in the order of strictness.
    var rank: UInt32
}

/// Sorts routes into trees of hosts and paths, and finds those that tie.
struct RouteTableBuilder {
    let methods: MethodIndex
    private(set) var hosts = SegmentTree()
    private(set) var paths = SegmentTree()
    private(set) var entries: [RouteEntry] = []
    private let ranks: [UInt32]
    private var roots: [UInt32] = []
    private var levels: [[MethodIndex.ID: [Int]]] = []
    private var bounds: [RouteLevel] = []

    init(_ routes: [Route], seed: UInt64) {
        methods = MethodIndex(routes, seed: seed)
        ranks = Strictness.ranks(routes)
        _ = hosts.addRoot()
    }

    /// - Throws: every pair of routes that tie.
    mutating func add(_ routes: [Route]) throws(RouteConflict) {
        for (index, route) in routes.enumerated() {
            if route.hosts.isEmpty {
                add(route, index, tree: hosts.below(0) { Self.addTree(&roots, &paths) })
            }
            for host in Set(route.hosts).sorted() {
                add(route, index, tree: tree(for: host))
            }
        }
        for level in levels {
            let start = UInt32(entries.count)
            entries += level.sorted { Self.isBefore($0.key, $1.key) }.compactMap { method, routes in
                guard let route = routes.first else { return nil }
                return RouteEntry(method: method, route: UInt32(route), rank: ranks[route])
            }
            bounds.append(RouteLevel(start: start, end: UInt32(entries.count)))
        }
        let pairs = conflicts()
        guard pairs.isEmpty else { throw RouteConflict(pairs: pairs) }
    }

    /// The host tree's nodes, whose items are path trees.
    func resolvedHosts() -> ([SegmentTree.Node], [PathTree]) {
        var trees = roots.map { PathTree(root: $0, next: SegmentTree.none) }
        let nodes = hosts.resolved(isSelfCovered: false) { trees[Int($0)].next = $1 }
        return (nodes, trees)
    }

    /// The path trees' nodes, whose items are levels.
    func resolvedPaths() -> ([SegmentTree.Node], [RouteLevel]) {
        var levels = bounds
        let nodes = paths.resolved(isSelfCovered: true) { levels[Int($0)].next = $1 }
        return (nodes, levels)
    }

    private mutating func tree(for host: String) -> UInt32 {
        let isWildcard = host.hasPrefix("*.")
        let name = Array(host.utf8.dropFirst(isWildcard ? 2 : 0))
        let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let node = hosts.node(labels.reversed(), below: 0)
        return isWildcard
            ? hosts.below(node) { Self.addTree(&roots, &paths) }
            : hosts.whole(of: node) { Self.addTree(&roots, &paths) }
    }

    private static func addTree(_ roots: inout [UInt32], _ paths: inout SegmentTree) -> UInt32 {
        roots.append(paths.addRoot())
        return UInt32(roots.count - 1)
    }

    private mutating func add(_ route: Route, _ index: Int, tree: UInt32) {
        let isPrefix = route.path.hasSuffix("/*")
        let path = Array(route.path.utf8.dropLast(isPrefix ? 2 : 0))
        let segments = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .dropFirst()
        let node = paths.node(segments, below: roots[Int(tree)])
        let makeLevel = {
            levels.append([:])
            return UInt32(levels.count - 1)
        }
        let level =
            isPrefix ? paths.below(node, make: makeLevel) : paths.whole(of: node, make: makeLevel)
        for method in methodIDs(of: route) {
            levels[Int(level)][method, default: []].append(index)
        }
    }

    /// HEAD is not counted: it follows GET, so naming it can neither add nor take away anything.
    private func methodIDs(of route: Route) -> Set<MethodIndex.ID> {
        guard !route.methods.isEmpty else { return [.any] }
        return Set(route.methods.filter { $0 != "HEAD" }.map { methods.id(Array($0.utf8).span) })
    }

    private static func isBefore(_ left: MethodIndex.ID, _ right: MethodIndex.ID) -> Bool {
        // "Any" is the least specific.
        left.rawValue &- 1 < right.rawValue &- 1
    }

    private func conflicts() -> [(Int, Int)] {
        var found: Set<[Int]> = []
        for routes in levels.lazy.flatMap(\.values) where routes.count > 1 {
            for (place, left) in routes.enumerated() {
                for right in routes[(place + 1)...] { found.insert([left, right]) }
            }
        }
        return found.sorted { $0.lexicographicallyPrecedes($1) }.map { ($0[0], $0[1]) }
    }
}
