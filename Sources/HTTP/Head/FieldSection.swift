/// One field line of a head (RFC 9110, section 5.2): where its name and its trimmed value are.
public struct FieldLine: Sendable {
    /// Without the colon.
    public var name: ByteRange
    /// Without white space around it.
    public var value: ByteRange
    /// What the proxy makes of the field.
    public var known: KnownField
    /// The line is about this connection only and must not be forwarded: a standard hop-by-hop
    /// field, or one that `Connection` nominates and may nominate (RFC 9110, section 7.6.1).
    public var isHopByHop: Bool

    @inline(__always)
    public init(
        name: ByteRange, value: ByteRange, known: KnownField, isHopByHop: Bool = false
    ) {
        self.name = name
        self.value = value
        self.known = known
        self.isHopByHop = isHopByHop
    }
}

/// The field lines of a head in the order in which they came. Keeps its memory between messages.
public struct FieldSection: Sendable {
    /// In the order of the message.
    public var lines: [FieldLine] = []
    /// One bit per `KnownField` that occurs, so that asking for an absent field costs nothing.
    public var present: UInt64 = 0

    public init() {
        lines.reserveCapacity(24)
    }

    /// Forgets the lines and keeps their memory.
    public mutating func removeAll() {
        lines.removeAll(keepingCapacity: true)
        present = 0
    }

    /// Adds a line behind the others.
    @inline(__always)
    public mutating func append(_ line: FieldLine) {
        lines.append(line)
        present |= 1 << UInt64(line.known.rawValue)
    }

    /// Whether a line carries this field.
    @inline(__always)
    public func contains(_ field: KnownField) -> Bool {
        present & (1 << UInt64(field.rawValue)) != 0
    }

    /// The first line of a field, or nil. Fields that must not repeat were refused by the parser.
    public func first(_ field: KnownField) -> FieldLine? {
        if !contains(field) { return nil }
        for line in lines where line.known == field { return line }
        return nil
    }

    /// How many lines carry this field.
    public func count(of field: KnownField) -> Int {
        if !contains(field) { return 0 }
        var count = 0
        for line in lines where line.known == field { count += 1 }
        return count
    }
}
