/// The routes of one host, or of none.
struct PathTree: Sendable {
    /// Root of its paths.
    var root: SegmentTree.Position
    /// Root of the same paths in folded form (`PathFolding`).
    var foldedRoot: SegmentTree.Position
    /// The tree to search when this one has no match: the next less specific host.
    var next: UInt32
}

/// One method of one route.
struct RouteEntry: Sendable {
    /// `any` for a route without methods.
    var method: MethodIndex.ID
    /// Index of the route.
    var route: UInt32
    /// The route's place in the order of strictness.
    var rank: UInt32
    /// The tree that it belongs to.
    var tree: UInt32
    /// Higher for a more specific path: twice the number of folded segments, and 1 for an exact
    /// path.
    var specificity: UInt32
    /// The entry to look at when this one is not for the method: of the same path, or of the next
    /// less specific one of the same host.
    var next: UInt32

    /// Whether it is written for a more specific host than `other`, which was found for the same
    /// request no earlier, or for a longer part of the path.
    @inline(__always)
    func isMoreSpecific(than other: RouteEntry) -> Bool {
        tree != other.tree || specificity > other.specificity
    }
}

/// Sorts routes into trees of hosts and paths, and finds those that tie.
struct RouteTableBuilder {
    /// A level while it fills: the routes of each method.
    private struct DraftLevel {
        var tree: UInt32
        var specificity: UInt32
        /// In a folded level several routes may stand for one method; the strictest one counts.
        var isFolded: Bool
        var routes: [MethodIndex.ID: [Int]] = [:]
    }

    /// The methods that routes name.
    let methods: MethodIndex
    /// Labels from the right.
    private(set) var hosts = SegmentTree()
    /// Segments from the left.
    private(set) var paths = SegmentTree()
    /// Of all levels, one run for each.
    private var entries: [RouteEntry] = []
    private let ranks: [UInt32]
    private var trees: [PathTree] = []
    private var drafts: [DraftLevel] = []
    private var levels: [Range<UInt32>] = []

    init(_ routes: [Route], seed: UInt64) {
        methods = MethodIndex(routes, seed: seed)
        ranks = Strictness.ranks(routes)
        _ = hosts.addRoot()
    }

    /// - Throws: the routes that tie.
    mutating func add(_ routes: [Route]) throws(RouteConflict) {
        for (index, route) in routes.enumerated() {
            if route.hosts.isEmpty {
                add(route, index, to: hosts.below(0) { Self.addTree(&trees, &paths) })
            }
            for host in Set(route.hosts).sorted() { add(route, index, to: tree(for: host)) }
        }
        let pairs = conflicts()
        guard pairs.isEmpty else { throw RouteConflict(pairs: pairs) }
        for draft in drafts { finish(draft) }
    }

    /// The host tree's nodes, whose items are path trees.
    func resolvedHosts() -> ([SegmentTree.Node], [PathTree]) {
        var trees = trees
        let nodes = hosts.resolved(isSelfCovered: false) { trees[Int($0)].next = $1 }
        return (nodes, trees)
    }

    /// The path trees' nodes, whose items are entries, and these entries.
    func resolvedPaths() -> ([SegmentTree.Node], [RouteEntry]) {
        var followers = Array(repeating: SegmentTree.none, count: levels.count)
        let nodes = paths.resolved(isSelfCovered: true) { followers[Int($0)] = $1 }
        let firstEntry = { (level: UInt32) -> UInt32 in
            var level = level
            // A route of HEAD alone has no entry.
            while level != SegmentTree.none, levels[Int(level)].isEmpty {
                level = followers[Int(level)]
            }
            return level == SegmentTree.none ? level : levels[Int(level)].lowerBound
        }
        var entries = entries
        for (level, follower) in zip(levels, followers) where !level.isEmpty {
            entries[Int(level.upperBound) - 1].next = firstEntry(follower)
        }
        let resolved = nodes.map { node in
            SegmentTree.Node(
                whole: firstEntry(node.whole), below: firstEntry(node.below), isLeaf: node.isLeaf)
        }
        return (resolved, entries)
    }

    private mutating func tree(for host: String) -> UInt32 {
        let isWildcard = host.hasPrefix("*.")
        let name = Array(host.utf8.dropFirst(isWildcard ? 2 : 0))
        let labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let node = hosts.node(labels.reversed(), below: 0)
        return isWildcard
            ? hosts.below(node) { Self.addTree(&trees, &paths) }
            : hosts.whole(of: node) { Self.addTree(&trees, &paths) }
    }

    private static func addTree(_ trees: inout [PathTree], _ paths: inout SegmentTree) -> UInt32 {
        trees.append(
            PathTree(root: paths.addRoot(), foldedRoot: paths.addRoot(), next: SegmentTree.none))
        return UInt32(trees.count - 1)
    }

    private mutating func add(_ route: Route, _ index: Int, to tree: UInt32) {
        let isPrefix = route.path.hasSuffix("/*")
        let path = Array(route.path.utf8.dropLast(isPrefix ? 2 : 0))
        let segments = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let folded = PathFolding.segments(path)
        let specificity = UInt32(folded.count * 2 + (isPrefix ? 0 : 1))
        for isFolded in [false, true] {
            let node =
                isFolded
                ? paths.node(folded, below: trees[Int(tree)].foldedRoot.number)
                : paths.node(segments.dropFirst(), below: trees[Int(tree)].root.number)
            let makeDraft = {
                drafts.append(
                    DraftLevel(tree: tree, specificity: specificity, isFolded: isFolded))
                return UInt32(drafts.count - 1)
            }
            let level =
                isPrefix
                ? paths.below(node, make: makeDraft) : paths.whole(of: node, make: makeDraft)
            for method in methodIDs(of: route) {
                drafts[Int(level)].routes[method, default: []].append(index)
            }
        }
    }

    /// HEAD is not counted: it follows GET, so naming it can neither add nor take away anything.
    private func methodIDs(of route: Route) -> Set<MethodIndex.ID> {
        guard !route.methods.isEmpty else { return [.any] }
        return Set(route.methods.filter { $0 != "HEAD" }.map { methods.id(Array($0.utf8).span) })
    }

    private mutating func finish(_ draft: DraftLevel) {
        let start = UInt32(entries.count)
        for (method, routes) in draft.routes.sorted(by: { Self.isBefore($0.key, $1.key) }) {
            guard let route = routes.max(by: { ranks[$0] < ranks[$1] }) else { continue }
            entries.append(
                RouteEntry(
                    method: method, route: UInt32(route), rank: ranks[route], tree: draft.tree,
                    specificity: draft.specificity, next: UInt32(entries.count + 1)))
        }
        levels.append(start..<UInt32(entries.count))
    }

    /// "Any" is the least specific: minus one makes it the highest number.
    private static func isBefore(_ left: MethodIndex.ID, _ right: MethodIndex.ID) -> Bool {
        left.rawValue &- 1 < right.rawValue &- 1
    }

    private func conflicts() -> [(Int, Int)] {
        var found: Set<[Int]> = []
        for routes in drafts.lazy.filter({ !$0.isFolded }).flatMap(\.routes.values) {
            // Not every pair: of thousands of equal routes there are too many.
            guard let first = routes.first else { continue }
            for other in routes.dropFirst() { found.insert([first, other]) }
        }
        return found.sorted { $0.lexicographicallyPrecedes($1) }.map { ($0[0], $0[1]) }
    }
}
