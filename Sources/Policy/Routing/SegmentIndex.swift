/// An immutable hash table of tree edges: which node lies behind `segment` below `parent`.
///
/// A look-up neither allocates nor depends on the number of edges, and what it wants to know of an
/// edge lies in half a cache line: with thousands of routes every further line is a cold one. Keys
/// come from the configuration, so an adversary chooses only what is looked up; the seed keeps the
/// probe lengths out of reach even so.
///
/// Safe to be Sendable: nothing changes after `init`, and `memory` keeps what `slots` points to.
struct SegmentIndex: @unchecked Sendable {
    /// An edge while the tree is being built.
    struct Edge: Hashable {
        /// The node that the edge leaves.
        let parent: UInt32
        /// Its label.
        let segment: [UInt8]
    }

    fileprivate struct Slot {
        /// 0 marks an empty slot: node 0 is a root and never a child.
        var child: UInt32 = 0
        var parent: UInt32 = 0
        /// The segment's first eight bytes.
        var first: UInt64 = 0
        /// Up to four more; where the segment starts in `longKeys` when there are more than these.
        var rest: UInt32 = 0
        /// Bytes of the segment, times two, plus one for a leaf.
        var countAndLeaf: UInt32 = 1
        var whole = SegmentTree.none
        var below = SegmentTree.none
    }

    /// Bytes of a segment that are kept in its slot.
    private static let shortKey = 12

    private let memory: SlotMemory
    private let slots: UnsafeMutablePointer<Slot>
    private let longKeys: [UInt8]
    private let seed: UInt64
    private let mask: Int

    /// Builds the table; at most half of its slots are used.
    ///
    /// - Parameter nodes: By the numbers of the edges' children; none where only these numbers
    ///   count.
    init(_ edges: [Edge: UInt32], nodes: [SegmentTree.Node] = [], seed: UInt64) {
        var capacity = 4
        while capacity < edges.count * 2 { capacity *= 2 }
        let memory = SlotMemory(capacity: capacity)
        var longKeys: [UInt8] = []
        for (edge, child) in edges {
            let segment = edge.segment.span
            let hash = SegmentHash.of(segment, below: edge.parent, seed: seed)
            var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
            while memory.slots[index].child != 0 { index = (index + 1) & (capacity - 1) }
            var slot = Slot(child: child, parent: edge.parent)
            slot.first = SegmentHash.word(segment, from: 0)
            if segment.count > Self.shortKey {
                slot.rest = UInt32(longKeys.count)
                longKeys += edge.segment
            } else {
                slot.rest = UInt32(truncatingIfNeeded: SegmentHash.word(segment, from: 8))
            }
            slot.countAndLeaf = UInt32(segment.count) << 1
            if nodes.indices.contains(Int(child)) {
                let node = nodes[Int(child)]
                slot.countAndLeaf |= node.isLeaf ? 1 : 0
                slot.whole = node.whole
                slot.below = node.below
            }
            memory.slots[index] = slot
        }
        self.memory = memory
        slots = memory.slots
        self.longKeys = longKeys
        self.seed = seed
        mask = capacity - 1
    }

    /// The node behind `segment` below `parent`, or nil.
    @inline(__always)
    func child(of parent: UInt32, _ segment: Span<UInt8>) -> SegmentTree.Position? {
        child(of: parent, segment, isFolding: false)
    }

    /// As above, with capital letters of `segment` (ASCII) read as small ones.
    @inline(__always)
    func child(of parent: UInt32, folding segment: Span<UInt8>) -> SegmentTree.Position? {
        child(of: parent, segment, isFolding: true)
    }

    @inline(__always)
    private func child(
        of parent: UInt32, _ segment: Span<UInt8>, isFolding: Bool
    ) -> SegmentTree.Position? {
        let hash = SegmentHash.of(segment, below: parent, seed: seed, isFolding: isFolding)
        let first = SegmentHash.word(segment, from: 0, isFolding: isFolding)
        var index = Int(truncatingIfNeeded: hash) & mask
        while true {
            // Safe: the mask keeps the index below the number of slots.
            let slot = slots[index]
            if slot.child == 0 { return nil }
            if slot.parent == parent, slot.first == first,
                isRest(of: slot, equalTo: segment, isFolding: isFolding)
            {
                let node = SegmentTree.Node(
                    whole: slot.whole, below: slot.below, isLeaf: slot.countAndLeaf & 1 != 0)
                return SegmentTree.Position(number: slot.child, node: node)
            }
            index = (index + 1) & mask
        }
    }

    /// Whether the count and what comes behind the first eight bytes are equal.
    @inline(__always)
    private func isRest(of slot: Slot, equalTo segment: Span<UInt8>, isFolding: Bool) -> Bool {
        let count = Int(slot.countAndLeaf >> 1)
        guard count == segment.count else { return false }
        if count <= 8 { return true }
        if count <= Self.shortKey {
            let rest = SegmentHash.word(segment, from: 8, isFolding: isFolding)
            return UInt64(slot.rest) == rest
        }
        let start = Int(slot.rest)
        for offset in 8..<count {
            let byte = isFolding ? lowercased(segment[offset]) : segment[offset]
            guard longKeys[start + offset] == byte else { return false }
        }
        return true
    }
}

/// The slots of an index, none of which lies across two cache lines.
private final class SlotMemory {
    let slots: UnsafeMutablePointer<SegmentIndex.Slot>

    init(capacity: Int) {
        slots = UnsafeMutableRawPointer.allocate(
            byteCount: capacity * MemoryLayout<SegmentIndex.Slot>.stride, alignment: 64
        ).bindMemory(to: SegmentIndex.Slot.self, capacity: capacity)
        slots.initialize(repeating: SegmentIndex.Slot(), count: capacity)
    }

    deinit {
        // Slots are trivial: there is nothing to deinitialize.
        UnsafeMutableRawPointer(slots).deallocate()
    }
}

/// The hash of a segment below a node: eight bytes at a time, multiplied to full width and folded.
private enum SegmentHash {
    @inline(__always)
    static func of(
        _ segment: Span<UInt8>, below parent: UInt32, seed: UInt64, isFolding: Bool = false
    ) -> UInt64 {
        let count = segment.count
        var hash = seed ^ (UInt64(parent) &* 0x9e37_79b9_7f4a_7c15)
        var offset = 0
        while count - offset >= 8 {
            let word = word(segment, from: offset, isFolding: isFolding)
            hash = mix(hash ^ word, 0xa076_1d64_78bd_642f)
            offset += 8
        }
        let rest = word(segment, from: offset, isFolding: isFolding)
        hash = mix(hash ^ rest, 0xe703_7ed1_a0b4_28db)
        return mix(hash ^ UInt64(count), 0x8ebc_6af0_9c88_c6e3)
    }

    /// Up to eight bytes, with zeros for those that are missing.
    @inline(__always)
    static func word(
        _ segment: Span<UInt8>, from start: Int, isFolding: Bool = false
    ) -> UInt64 {
        var word: UInt64 = 0
        if segment.count - start >= 8 {
            word = segment.bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self)
        } else {
            var index = segment.count
            while index > start {
                index -= 1
                word = word << 8 | UInt64(segment[index])
            }
        }
        return isFolding ? lowercased(word) : word
    }

    @inline(__always)
    private static func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }

    /// Sets bit 5 of every byte from "A" to "Z": adding moves such bytes, and no others, across bit
    /// 7.
    @inline(__always)
    private static func lowercased(_ word: UInt64) -> UInt64 {
        let low = word & 0x7f7f_7f7f_7f7f_7f7f
        let isAtLeastA = low &+ 0x3f3f_3f3f_3f3f_3f3f
        let isAboveZ = low &+ 0x2525_2525_2525_2525
        return word | (isAtLeastA & ~isAboveZ & ~word & 0x8080_8080_8080_8080) >> 2
    }
}
