internal import HTTP
internal import Reactor

/// The fields of a header block as a fuzzer writes them: a name ends with 0xFF, a value with 0xFE, so
/// every other byte can be anywhere in them.
struct TranslatedFields {
    /// In the order of the block.
    let all: [(name: [UInt8], value: [UInt8])]

    init(_ bytes: ArraySlice<UInt8>) {
        all = bytes.split(separator: 0xFE).map { field in
            guard let end = field.firstIndex(of: 0xFF) else { return (Array(field), []) }
            return (Array(field[..<end]), Array(field[(end + 1)...]))
        }
    }

    /// The block as a connection's decoder would give it to the assembly.
    ///
    /// - Returns: nil when it is so long that the connection has to end.
    func assembled(isTrailing: Bool, _ limits: HeadLimits) -> HeadAssembly? {
        let assembly = HeadAssembly(limits: limits)
        assembly.begin(isTrailing: isTrailing)
        for field in all where !assembly.add(field.name.span, field.value.span) { return nil }
        return assembly
    }

    /// The value of the pseudo-header field that is there once.
    subscript(pseudo name: String) -> [UInt8]? {
        let values = all.filter { $0.name == Array(name.utf8) }.map(\.value)
        return values.count == 1 ? values[0] : nil
    }

    /// What must be found again in the text of a head: every field that is neither a pseudo-header
    /// field nor put together from several (RFC 9113, sections 8.2.3 and 8.3).
    func plain(without names: Set<String>) -> [[[UInt8]]] {
        all.filter { field in
            field.name.first != UInt8(ascii: ":") && !names.contains(smallName(field.name))
        }.map { [$0.name, $0.value] }
    }
}

/// A field's name in small letters, for comparisons.
func smallName(_ name: [UInt8]) -> String {
    String(decoding: name, as: UTF8.self).lowercased()
}

extension ByteBuffer {
    /// What lies in it.
    var copy: [UInt8] { withUnsafeBytes { Array($0) } }
}
