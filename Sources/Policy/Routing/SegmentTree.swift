/// A tree of names, split into segments, in which some nodes hold an item for exactly this name,
/// and some an item for every name beneath. Built once; hosts (by label, from the right) and paths
/// (by segment) both use it.
struct SegmentTree {
    /// What a node answers once the items of its ancestors are handed down.
    struct Node: Sendable {
        /// The most specific item for a name that ends here, or `none`.
        var whole: UInt32
        /// The most specific item for a name that goes on below, or `none`.
        var below: UInt32
        /// Nothing hangs below: a look-up need not go on.
        var isLeaf: Bool
    }

    /// A node and its number.
    struct Position: Sendable {
        var number: UInt32
        var node: Node
    }

    /// No item.
    static let none = UInt32.max

    /// From a node and a segment to the node below.
    private(set) var edges: [SegmentIndex.Edge: UInt32] = [:]
    /// Nil for roots. A parent's number is lower than its children's.
    private var parents: [UInt32?] = []
    private var wholes: [UInt32: UInt32] = [:]
    private var belows: [UInt32: UInt32] = [:]

    /// Adds an independent tree and returns its root, whose items are not known yet. The first root
    /// is node 0.
    mutating func addRoot() -> Position {
        parents.append(nil)
        return Position(
            number: UInt32(parents.count - 1),
            node: Node(whole: Self.none, below: Self.none, isLeaf: true))
    }

    /// The node of a name, made when it is not there yet.
    mutating func node(_ segments: some Sequence<ArraySlice<UInt8>>, below root: UInt32) -> UInt32 {
        var node = root
        for segment in segments {
            let edge = SegmentIndex.Edge(parent: node, segment: Array(segment))
            if let child = edges[edge] {
                node = child
            } else {
                parents.append(node)
                node = UInt32(parents.count - 1)
                edges[edge] = node
            }
        }
        return node
    }

    /// The item for exactly this name; `make` is asked when there is none.
    mutating func whole(of node: UInt32, make: () -> UInt32) -> UInt32 {
        if let item = wholes[node] { return item }
        let item = make()
        wholes[node] = item
        return item
    }

    /// The item for everything beneath this name; `make` is asked when there is none.
    mutating func below(_ node: UInt32, make: () -> UInt32) -> UInt32 {
        if let item = belows[node] { return item }
        let item = make()
        belows[node] = item
        return item
    }

    /// Hands items down, so that a look-up never climbs.
    ///
    /// - Parameters:
    ///   - isSelfCovered: Whether "everything beneath" includes the name itself.
    ///   - follow: Told for each item which less specific one comes after it.
    func resolved(isSelfCovered: Bool, follow: (_ item: UInt32, _ next: UInt32) -> Void) -> [Node] {
        var nodes: [Node] = []
        nodes.reserveCapacity(parents.count)
        for (index, parent) in parents.enumerated() {
            let node = UInt32(index)
            let outer = parent.map { nodes[Int($0)].below } ?? Self.none
            var below = outer
            if let item = belows[node] {
                follow(item, outer)
                below = item
            }
            var whole = isSelfCovered ? below : outer
            if let item = wholes[node] {
                follow(item, whole)
                whole = item
            }
            nodes.append(Node(whole: whole, below: below, isLeaf: true))
            if let parent { nodes[Int(parent)].isLeaf = false }
        }
        return nodes
    }
}
