/// Methods as small numbers. Names compare byte by byte, case matters (RFC 9110, section 9.1).
struct MethodIndex: Sendable {
    /// A method that some route may name.
    struct ID: Hashable, Sendable {
        /// The method's place in the index.
        let rawValue: UInt16

        /// Stands for "no `methods`" in a route, and for "no route names it" in a request.
        static let any = ID(rawValue: 0)
        /// Always there: HEAD follows it.
        static let get = ID(rawValue: 1)

        /// One of the methods that every backend knows: RFC 9110 and PATCH (RFC 5789).
        var isStandard: Bool { rawValue != 0 && rawValue < 16 }
    }

    private let extensions: SegmentIndex

    /// Numbers the methods of all routes.
    init(_ routes: [Route], seed: UInt64) {
        var edges: [SegmentIndex.Edge: UInt32] = [:]
        for name in routes.flatMap(\.methods) {
            let bytes = Array(name.utf8)
            guard Self.standard(bytes.span) == .any else { continue }
            let edge = SegmentIndex.Edge(parent: 0, segment: bytes)
            if edges[edge] == nil, edges.count < Int(UInt16.max) - 16 {
                edges[edge] = UInt32(16 + edges.count)
            }
        }
        extensions = SegmentIndex(edges, seed: seed)
    }

    /// The number of a method; HEAD has GET's (pitfall P8), and a method that no route names is
    /// `any`.
    @inline(__always)
    func id(_ name: Span<UInt8>) -> ID {
        let standard = Self.standard(name)
        guard standard == .any else { return standard }
        guard let found = extensions.child(of: 0, name) else { return .any }
        return ID(rawValue: UInt16(truncatingIfNeeded: found.number))
    }

    @inline(__always)
    private static func standard(_ name: Span<UInt8>) -> ID {
        guard name.count >= 3, name.count <= 7 else { return .any }
        var packed: UInt64 = 0
        for index in name.indices { packed = packed << 8 | UInt64(name[index]) }
        switch packed {
        case 0x47_45_54, 0x48_45_41_44: return .get
        case 0x50_4f_53_54: return ID(rawValue: 2)
        case 0x50_55_54: return ID(rawValue: 3)
        case 0x44_45_4c_45_54_45: return ID(rawValue: 4)
        case 0x4f_50_54_49_4f_4e_53: return ID(rawValue: 5)
        case 0x50_41_54_43_48: return ID(rawValue: 6)
        case 0x43_4f_4e_4e_45_43_54: return ID(rawValue: 7)
        case 0x54_52_41_43_45: return ID(rawValue: 8)
        default: return .any
        }
    }
}
