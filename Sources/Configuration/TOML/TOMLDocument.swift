internal import CTOML

/// A parsed TOML 1.0 document; owns the C object that its nodes read from.
final class TOMLDocument {
    private let handle: OpaquePointer

    /// Parses at most 1 MiB of UTF-8.
    init(parsing bytes: [UInt8]) throws(TOMLSyntaxError) {
        var error = ctoml_error()
        let handle = bytes.withUnsafeBytes { buffer in
            ctoml_parse(
                buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count, &error)
        }
        guard let handle else { throw TOMLSyntaxError(error) }
        self.handle = handle
    }

    deinit {
        ctoml_free(handle)
    }

    /// The root table.
    var root: TOMLNode { TOMLNode(document: self, index: 0) }

    /// The node at an index; an empty table where there is none, which no node of this module
    /// points to.
    func node(at index: Int) -> ctoml_node {
        var node = ctoml_node()
        _ = ctoml_node_at(handle, index, &node)
        return node
    }
}

/// Why a document is no TOML, and where.
struct TOMLSyntaxError: Error {
    var message: String
    var position: SourcePosition

    init(_ error: ctoml_error) {
        // The shim always terminates the message.
        message = withUnsafeBytes(of: error.message) { buffer in
            String(decoding: buffer.prefix { $0 != 0 }, as: UTF8.self)
        }
        position = SourcePosition(error.position)
    }
}
