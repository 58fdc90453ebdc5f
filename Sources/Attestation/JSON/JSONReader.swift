/// Reads a JSON text into the flat list of nodes of a ``JSONDocument``.
///
/// One loop with a chain of open containers instead of recursion: the depth of a stranger's text is
/// bounded by a limit that we chose, not by the thread's stack.
struct JSONReader {
    private(set) var nodes: [JSONNode] = []
    /// The innermost open container, or -1; as long as a container is open, its `next` is the one
    /// around it.
    private var container = -1
    private var depth = 0
    private var position = 0

    /// - Parameter expectedNodes: How many nodes to make room for.
    init(expectedNodes: Int) {
        nodes.reserveCapacity(expectedNodes)
    }

    /// Reads exactly one value, with white space around it; escapes are resolved in place.
    mutating func read(_ text: inout MutableSpan<UInt8>) throws(JSONError) {
        repeat {
            try value(&text)
        } while try continues(&text)
        skipSpace(text)
        guard position == text.count else { throw .syntax }
    }

    /// Reads a scalar, or opens a container up to where its first value begins.
    private mutating func value(_ text: inout MutableSpan<UInt8>) throws(JSONError) {
        while true {
            skipSpace(text)
            guard position < text.count else { throw .syntax }
            switch text[position] {
            case UInt8(ascii: "\""):
                return try string(&text)
            case UInt8(ascii: "{"):
                try push(.object)
                if skip(UInt8(ascii: "}"), in: text) { return pop() }
                try name(&text)
            case UInt8(ascii: "["):
                try push(.array)
                if skip(UInt8(ascii: "]"), in: text) { return pop() }
                nodes[container].count = 1
            case UInt8(ascii: "t"):
                return try literal("true", .true, in: text)
            case UInt8(ascii: "f"):
                return try literal("false", .false, in: text)
            case UInt8(ascii: "n"):
                return try literal("null", .null, in: text)
            default:
                return try number(text)
            }
            // The container's first value is next: once more round, without recursion.
        }
    }

    /// Reads what stands behind a value; closes containers that end there.
    ///
    /// - Returns: Whether another value follows.
    private mutating func continues(_ text: inout MutableSpan<UInt8>) throws(JSONError) -> Bool {
        while container >= 0 {
            let isObject = nodes[container].kind == .object
            if skip(UInt8(ascii: ","), in: text) {
                if isObject {
                    try name(&text)
                } else {
                    nodes[container].count += 1
                }
                return true
            }
            guard skip(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"), in: text) else {
                throw .syntax
            }
            pop()
        }
        return false
    }

    private mutating func push(_ kind: JSONKind) throws(JSONError) {
        guard depth < JSONLimits.depth else { throw .tooDeep }
        let around = container
        container = nodes.count
        depth += 1
        append(kind, start: position, count: 0)
        nodes[container].next = Int32(truncatingIfNeeded: around)
        position += 1
    }

    private mutating func pop() {
        let around = Int(nodes[container].next)
        nodes[container].next = Int32(truncatingIfNeeded: nodes.count)
        container = around
        depth -= 1
    }

    /// Reads a member's name and the colon behind it.
    private mutating func name(_ text: inout MutableSpan<UInt8>) throws(JSONError) {
        let object = container
        guard nodes[object].count < JSONLimits.members else { throw .tooManyMembers }
        skipSpace(text)
        guard position < text.count, text[position] == UInt8(ascii: "\"") else { throw .syntax }
        let start = position + 1
        let end = try JSONString.resolve(&text, from: start)
        let name = text.span.extracting(start..<end.characters)
        let ends = Self.ends(of: name)
        if isTaken(name, ends: ends, since: object + 1, in: text.span) { throw .duplicateName }
        append(.string, start: start, count: name.count, ends: ends)
        position = end.text
        nodes[object].count += 1
        guard skip(UInt8(ascii: ":"), in: text) else { throw .syntax }
    }

    /// Whether a name from the node `first` on is this one.
    private func isTaken(
        _ name: Span<UInt8>, ends: UInt16, since first: Int, in text: Span<UInt8>
    ) -> Bool {
        let nodes = nodes.span
        var index = first
        while index < nodes.count {
            let earlier = nodes[index]
            let start = Int(earlier.start)
            if Int(earlier.count) == name.count, earlier.ends == ends,
                text.extracting(start..<(start + name.count)).equals(name)
            {
                return true
            }
            index = Int(nodes[index + 1].next)
        }
        return false
    }

    private static func ends(of name: Span<UInt8>) -> UInt16 {
        name.isEmpty ? 0 : UInt16(name[0]) << 8 | UInt16(name[name.count - 1])
    }

    private mutating func string(_ text: inout MutableSpan<UInt8>) throws(JSONError) {
        let start = position + 1
        let end = try JSONString.resolve(&text, from: start)
        append(.string, start: start, count: end.characters - start)
        position = end.text
    }

    private mutating func literal(
        _ word: StaticString, _ kind: JSONKind, in text: borrowing MutableSpan<UInt8>
    ) throws(JSONError) {
        let count = word.utf8CodeUnitCount
        guard count <= text.count - position,
            text.span.extracting(position..<(position + count)).equals(word)
        else { throw .syntax }
        append(kind, start: position, count: count)
        position += count
    }

    /// Reads a number of RFC 8259, section 6, and keeps it as text.
    private mutating func number(_ text: borrowing MutableSpan<UInt8>) throws(JSONError) {
        let start = position
        skipOne(of: "-", in: text)
        if skipOne(of: "0", in: text) == false { try digits(text) }
        if skipOne(of: ".", in: text) { try digits(text) }
        if skipOne(of: "eE", in: text) {
            skipOne(of: "+-", in: text)
            try digits(text)
        }
        append(.number, start: start, count: position - start)
    }

    private mutating func digits(_ text: borrowing MutableSpan<UInt8>) throws(JSONError) {
        let start = position
        while position < text.count, text[position] &- UInt8(ascii: "0") <= 9 { position += 1 }
        guard position > start else { throw .syntax }
    }

    @discardableResult
    private mutating func skipOne(
        of bytes: StaticString, in text: borrowing MutableSpan<UInt8>
    ) -> Bool {
        guard position < text.count, bytes.contains(text[position]) else { return false }
        position += 1
        return true
    }

    /// Skips white space and then `byte`, if it is there.
    private mutating func skip(_ byte: UInt8, in text: borrowing MutableSpan<UInt8>) -> Bool {
        if position < text.count, text[position] <= 0x20 { skipSpace(text) }
        guard position < text.count, text[position] == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace(_ text: borrowing MutableSpan<UInt8>) {
        while position < text.count {
            switch text[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    private mutating func append(_ kind: JSONKind, start: Int, count: Int, ends: UInt16 = 0) {
        // The text is at most JSONLimits.textBytes long, so every offset fits.
        nodes.append(
            JSONNode(
                kind: kind,
                ends: ends,
                start: Int32(truncatingIfNeeded: start),
                count: Int32(truncatingIfNeeded: count),
                next: Int32(truncatingIfNeeded: nodes.count + 1)))
    }
}
