/// Why a text is not a JSON value that this module reads.
package enum JSONError: String, Error {
    /// Not the grammar of RFC 8259, or not UTF-8.
    case syntax = "not JSON"
    /// An object has one name twice: two readers would see two different values (pitfall T11).
    case duplicateName = "an object names a member twice"
    case tooDeep = "nested too deeply"
    case tooManyMembers = "an object has too many members"
    case tooLong = "too long"
}

/// The kinds of JSON values.
package enum JSONKind: UInt8 {
    case object, array, string, number, `true`, `false`, null
}

/// One value, or one member's name, in the flat list of a document.
struct JSONNode {
    var kind: JSONKind
    /// First and last byte of a name's decoded characters, 0 for none: most names differ in these,
    /// or in their length.
    var ends: UInt16 = 0
    /// First byte of a string's decoded characters or of a number's digits.
    var start: Int32
    /// Bytes of a string or number; members of an object; elements of an array.
    var count: Int32
    /// Index of the node behind this value and everything in it.
    var next: Int32
}

/// A JSON text that was checked as a whole: RFC 8259, UTF-8, no name twice in an object, bounded
/// depth.
///
/// Values lie in one flat list in the order of the text and are named by their index; an object's
/// members are pairs of a name and a value. The root is value 0.
/// docs/decisions/0042-own-json-reader.md says why it is our own.
package struct JSONDocument {
    /// The text; escapes are resolved in place, so that every string is a run of these bytes.
    private let text: [UInt8]
    private let nodes: [JSONNode]

    /// Reads a whole text.
    ///
    /// - Throws: ``JSONError`` for anything but exactly one value with white space around it.
    package init(_ text: consuming [UInt8]) throws(JSONError) {
        guard text.count <= JSONLimits.textBytes else { throw .tooLong }
        var text = text
        var reader = JSONReader(expectedNodes: text.count / 8 + 4)
        var bytes = text.mutableSpan
        try reader.read(&bytes)
        self.text = text
        self.nodes = reader.nodes
    }

    /// The kind of a value.
    package func kind(of value: Int) -> JSONKind { nodes[value].kind }

    /// How many members or elements an object or array has.
    func count(of value: Int) -> Int { Int(nodes[value].count) }

    /// The value of a member, or nil when `object` is none or has no such member.
    package func member(_ name: StaticString, of object: Int = 0) -> Int? {
        guard nodes[object].kind == .object else { return nil }
        var index = object + 1
        for _ in 0..<nodes[object].count {
            if characters(index).equals(name) { return index + 1 }
            index = Int(nodes[index + 1].next)
        }
        return nil
    }

    /// Walks over those members of the root whose names are short: name and value, in the order of
    /// the text.
    @inline(__always)
    func forEachShortMember(_ body: (ShortName, Int) -> Void) {
        let nodes = nodes.span
        guard nodes[0].kind == .object else { return }
        var index = 1
        for _ in 0..<nodes[0].count {
            let name = nodes[index]
            if let name = ShortName(
                text.span.bytes, from: Int(name.start), count: Int(name.count))
            {
                body(name, index + 1)
            }
            index = Int(nodes[index + 1].next)
        }
    }

    /// The decoded characters of a string, as UTF-8, or nil when the value is none.
    @_lifetime(borrow self)
    package func string(_ value: Int) -> Span<UInt8>? {
        guard nodes[value].kind == .string else { return nil }
        return characters(value)
    }

    /// A number that is written as plain digits, from 0 to 2^53; nil for every other number and
    /// kind.
    ///
    /// No detour through `Double`: `1e400`, fractions and signs are no seconds (pitfall T9).
    package func integer(_ value: Int) -> Int64? {
        guard nodes[value].kind == .number, nodes[value].count <= 16 else { return nil }
        let digits = characters(value)
        var result: Int64 = 0
        for index in digits.indices {
            let digit = digits[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            // At most 16 digits: below 10^16, far from the end of Int64.
            result = result &* 10 &+ Int64(digit)
        }
        return result <= 1 << 53 ? result : nil
    }

    /// The elements of an array, in order; none when the value is no array.
    package func elements(of array: Int) -> Elements {
        guard nodes[array].kind == .array else { return Elements(nodes: nodes, index: 0, left: 0) }
        return Elements(nodes: nodes, index: array + 1, left: nodes[array].count)
    }

    /// Whether a condition holds for every element of an array, each given as the decoded characters
    /// of a string, or nil when it is none. Holds for an empty array; for other values, too.
    @inline(__always)
    func allElements(of array: Int, _ condition: (Span<UInt8>?) -> Bool) -> Bool {
        guard nodes[array].kind == .array else { return true }
        var index = array + 1
        for _ in 0..<nodes[array].count {
            guard condition(string(index)) else { return false }
            index = Int(nodes[index].next)
        }
        return true
    }

    /// Walks over the elements of an array.
    package struct Elements: Sequence, IteratorProtocol {
        fileprivate let nodes: [JSONNode]
        fileprivate var index: Int
        fileprivate var left: Int32

        package mutating func next() -> Int? {
            guard left > 0 else { return nil }
            left -= 1
            defer { index = Int(nodes[index].next) }
            return index
        }
    }

    /// The decoded characters of a string, or a number or literal as it is written.
    @_lifetime(borrow self)
    func characters(_ value: Int) -> Span<UInt8> {
        let start = Int(nodes[value].start)
        return text.span.extracting(start..<(start + Int(nodes[value].count)))
    }
}

/// The limits of what is read. A text comes from a stranger; its reader must cost no more than its
/// bytes.
enum JSONLimits {
    /// Longest text, in bytes.
    static let textBytes = 1 << 20
    /// Deepest nesting of arrays and objects.
    static let depth = 16
    /// Names are compared with one another, so the square of this bounds the work of an object.
    static let members = 64
}
