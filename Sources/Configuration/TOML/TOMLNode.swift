internal import CTOML

/// A value in a TOML document, with the place where it stands. Keeps the document alive.
struct TOMLNode {
    enum Kind {
        case table, array, string, integer, float, boolean, dateOrTime

        /// The word for messages, with its article.
        var phrase: String {
            switch self {
            case .table: "a table"
            case .array: "an array"
            case .string: "a string"
            case .integer: "an integer"
            case .float: "a number with decimals"
            case .boolean: "a boolean"
            case .dateOrTime: "a date or time"
            }
        }
    }

    let kind: Kind
    /// Where the value stands; for a table with a header, the header.
    let region: SourceRegion
    /// The key of a table's entry; empty for elements of arrays and the root.
    let key: String
    let keyRegion: SourceRegion

    private let document: TOMLDocument
    private let node: ctoml_node

    init(document: TOMLDocument, index: Int) {
        self.document = document
        node = document.node(at: index)
        kind =
            switch node.kind {
            case CTOML_TABLE: .table
            case CTOML_ARRAY: .array
            case CTOML_STRING: .string
            case CTOML_INTEGER: .integer
            case CTOML_FLOAT: .float
            case CTOML_BOOLEAN: .boolean
            default: .dateOrTime
            }
        region = SourceRegion(node.region)
        key = String(node.key, keptAliveBy: document)
        keyRegion = SourceRegion(node.key_region)
    }

    /// The entries of a table or the elements of an array, in file order.
    var children: [TOMLNode] {
        (0..<node.child_count).map { TOMLNode(document: document, index: node.first_child + $0) }
    }

    var string: String? { kind == .string ? String(node.string, keptAliveBy: document) : nil }
    var integer: Int64? { kind == .integer ? node.integer : nil }
    var float: Double? { kind == .float ? node.floating : nil }
    var boolean: Bool? { kind == .boolean ? node.boolean : nil }
}

extension String {
    fileprivate init(_ text: ctoml_text, keptAliveBy document: TOMLDocument) {
        // Safe: the bytes belong to the document, which outlives this call, and they are copied
        // here.
        self = withExtendedLifetime(document) {
            let bytes = UnsafeRawBufferPointer(start: text.bytes, count: text.count)
            return String(decoding: bytes, as: UTF8.self)
        }
    }
}

extension SourcePosition {
    init(_ position: ctoml_position) {
        self.init(line: Int(position.line), column: Int(position.column))
    }
}

extension SourceRegion {
    fileprivate init(_ region: ctoml_region) {
        self.init(start: SourcePosition(region.begin), end: SourcePosition(region.end))
    }
}
