/// An immutable hash table of tree edges: which node lies behind `segment` below `parent`.
///
/// A look-up neither allocates nor depends on the number of edges. Keys come from the
/// configuration, so an adversary chooses only what is looked up; the seed keeps the probe lengths
/// out of reach even so.
struct SegmentIndex: Sendable {
    /// An edge while the tree is being built.
    struct Edge: Hashable {
        /// The node that the edge leaves.
        let parent: UInt32
        /// Its label.
        let segment: [UInt8]
    }

    private struct Slot {
        var hash: UInt32 = 0
        var parent: UInt32 = 0
        /// 0 marks an empty slot: node 0 is a root and never a child.
        var child: UInt32 = 0
        var start: UInt32 = 0
        var count: UInt32 = 0
    }

    private let slots: [Slot]
    private let keys: [UInt8]
    private let seed: UInt64
    private let mask: Int

    /// Builds the table; at most half of its slots are used.
    init(_ edges: [Edge: UInt32], seed: UInt64) {
        var capacity = 4
        while capacity < edges.count * 2 { capacity *= 2 }
        var slots = [Slot](repeating: Slot(), count: capacity)
        var keys: [UInt8] = []
        for (edge, child) in edges {
            let hash = SegmentHash.of(edge.segment.span, below: edge.parent, seed: seed)
            var index = Int(truncatingIfNeeded: hash) & (capacity - 1)
            while slots[index].child != 0 { index = (index + 1) & (capacity - 1) }
            slots[index] = Slot(
                hash: UInt32(truncatingIfNeeded: hash >> 32), parent: edge.parent, child: child,
                start: UInt32(keys.count), count: UInt32(edge.segment.count))
            keys += edge.segment
        }
        self.slots = slots
        self.keys = keys
        self.seed = seed
        mask = capacity - 1
    }

    /// The node behind `segment` below `parent`, or nil.
    @inline(__always)
    func child(of parent: UInt32, _ segment: Span<UInt8>) -> UInt32? {
        child(of: parent, segment, isFolding: false)
    }

    /// As above, with capital letters of `segment` (ASCII) read as small ones.
    @inline(__always)
    func child(of parent: UInt32, folding segment: Span<UInt8>) -> UInt32? {
        child(of: parent, segment, isFolding: true)
    }

    @inline(__always)
    private func child(of parent: UInt32, _ segment: Span<UInt8>, isFolding: Bool) -> UInt32? {
        let hash = SegmentHash.of(segment, below: parent, seed: seed, isFolding: isFolding)
        let tag = UInt32(truncatingIfNeeded: hash >> 32)
        var index = Int(truncatingIfNeeded: hash) & mask
        while true {
            let slot = slots[index]
            if slot.child == 0 { return nil }
            if slot.hash == tag, slot.parent == parent,
                isKey(of: slot, equalTo: segment, isFolding: isFolding)
            {
                return slot.child
            }
            index = (index + 1) & mask
        }
    }

    @inline(__always)
    private func isKey(of slot: Slot, equalTo segment: Span<UInt8>, isFolding: Bool) -> Bool {
        guard Int(slot.count) == segment.count else { return false }
        let start = Int(slot.start)
        for offset in 0..<segment.count {
            let byte = isFolding ? lowercased(segment[offset]) : segment[offset]
            guard keys[start + offset] == byte else { return false }
        }
        return true
    }
}

/// The hash of a segment below a node: eight bytes at a time, multiplied to full width and folded.
private enum SegmentHash {
    @inline(__always)
    static func of(
        _ segment: Span<UInt8>, below parent: UInt32, seed: UInt64, isFolding: Bool = false
    ) -> UInt64 {
        let bytes = segment.bytes
        let count = segment.count
        var hash = seed ^ (UInt64(parent) &* 0x9e37_79b9_7f4a_7c15)
        var offset = 0
        while count - offset >= 8 {
            let word = bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
            hash = mix(hash ^ (isFolding ? lowercased(word) : word), 0xa076_1d64_78bd_642f)
            offset += 8
        }
        var rest: UInt64 = 0
        while offset < count {
            rest = rest << 8 | UInt64(segment[offset])
            offset += 1
        }
        hash = mix(hash ^ (isFolding ? lowercased(rest) : rest), 0xe703_7ed1_a0b4_28db)
        return mix(hash ^ UInt64(count), 0x8ebc_6af0_9c88_c6e3)
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
