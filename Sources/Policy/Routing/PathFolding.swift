/// The folded form of a path: what careless backends take for the same path. ASCII letters are
/// small, path parameters (";…", also where the semicolon is encoded) are cut off, and empty
/// segments, a trailing slash among them, are left out.
enum PathFolding {
    /// The segments of a path in folded form.
    static func segments(_ path: some Collection<UInt8>) -> [ArraySlice<UInt8>] {
        path.split(separator: UInt8(ascii: "/")).compactMap { segment in
            let name = withoutParameters(segment).map(lowercased)
            return name.isEmpty ? nil : name[...]
        }
    }

    private static func withoutParameters(_ segment: some Collection<UInt8>) -> [UInt8] {
        let bytes = Array(segment.prefix { $0 != UInt8(ascii: ";") })
        let encoded = bytes.indices.first { bytes[$0...].starts(with: encodedSemicolon) }
        return Array(bytes[..<(encoded ?? bytes.endIndex)])
    }

    private static let encodedSemicolon = Array("%3B".utf8)

    /// Where the path parameters of a segment begin, or where it ends. A normal path has the
    /// encoded semicolon with a capital letter.
    @inline(__always)
    static func nameEnd(in path: Span<UInt8>, _ segment: Range<Int>) -> Int {
        for index in segment {
            if path[index] == UInt8(ascii: ";") { return index }
            if path[index] == UInt8(ascii: "%"), index + 2 < segment.upperBound,
                path[index + 1] == UInt8(ascii: "3"), path[index + 2] == UInt8(ascii: "B")
            {
                return index
            }
        }
        return segment.upperBound
    }

    /// Whether a path that starts with "/" is its own folded form.
    @inline(__always)
    static func isFolded(_ path: Span<UInt8>) -> Bool {
        var previous: UInt8 = 0
        for index in path.indices {
            let byte = path[index]
            if byte &- UInt8(ascii: "A") < 26 || byte == UInt8(ascii: ";")
                || byte == UInt8(ascii: "%") || (byte == UInt8(ascii: "/") && previous == byte)
            {
                return false
            }
            previous = byte
        }
        return previous != UInt8(ascii: "/") || path.count == 1
    }
}
