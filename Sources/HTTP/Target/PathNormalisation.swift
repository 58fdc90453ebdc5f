/// The one normalisation of paths (docs/decisions/0010-one-path.md).
///
/// Afterwards two paths that a decoding backend reads alike are equal byte for byte, so a route
/// cannot be dodged by spelling. Dot segments are resolved; a path that would need guessing is
/// refused.
extension RequestTarget {
    /// Checks the path at `start`, up to "?", a space or another byte that ends it, and rewrites it
    /// when it is not in normal form.
    ///
    /// - Returns: The index behind the path.
    /// - Throws: `path`.
    mutating func normalisePath(
        _ bytes: Span<UInt8>, from start: Int
    ) throws(MalformedMessage) -> Int {
        var end = start
        var isNormal = true
        while end < bytes.count {
            let byte = bytes[end]
            if PathCharacters.plain.contains(byte) {
                end &+= 1
            } else if byte == 0x25 {
                let triplet = try PercentTriplet(bytes, at: end)
                if triplet.decodes || !triplet.isUppercase { isNormal = false }
                end &+= 3
            } else if PathCharacters.encoded.contains(byte) {
                isNormal = false
                end &+= 1
            } else if byte == 0x5C {
                throw MalformedMessage(.path)
            } else {
                break
            }
        }
        let source = ByteRange(start: start, count: end &- start)
        if isNormal, try !bytes.slice(source).hasDotSegments() {
            let empty = bytes.slice(source).leadingEmptySegments
            path = ByteRange(start: start &+ empty, count: end &- start &- empty)
            return end
        }
        isRewritten = true
        rewritten.removeAll(keepingCapacity: true)
        try rewritten.appendNormalised(bytes.slice(source))
        if try rewritten.span.hasDotSegments() { try rewritten.removeDotSegments() }
        rewritten.removeFirst(rewritten.span.leadingEmptySegments)
        path = ByteRange(start: 0, count: rewritten.count)
        return end
    }
}

/// Which characters stand in a normal path as themselves, and which as a triplet.
enum PathCharacters {
    /// pchar of RFC 3986 without "%", and "/".
    static let plain = ByteSet.alphanumeric.union(ByteSet("-._~!$&'()*+,;=:@/"))
    /// What RFC 3986 keeps out of paths, though clients send it raw.
    static let encoded = ByteSet("\"<>[]^`{|}")
    /// What a triplet must not hide, besides controls: the slashes.
    static let forbiddenTriplets = ByteSet("/\\")
    /// Plain, but a triplet keeps its spelling: backends disagree whether "+" means a space, and a
    /// semicolon that is data must not become one that starts a path parameter.
    static let keptTriplets = ByteSet("+;")
}

/// One "%" with two hexadecimal digits (RFC 3986, section 2.1).
private struct PercentTriplet {
    var byte: UInt8
    var isUppercase: Bool

    /// - Throws: `path` when it is malformed or hides what must not be hidden.
    init(_ bytes: Span<UInt8>, at index: Int) throws(MalformedMessage) {
        guard index <= bytes.count - 3,
            let high = bytes[index + 1].hexadecimalValue,
            let low = bytes[index + 2].hexadecimalValue
        else { throw MalformedMessage(.path) }
        byte = high << 4 | low
        isUppercase = bytes[index + 1] < 0x61 && bytes[index + 2] < 0x61
        if byte < 0x20 || byte == 0x7F || PathCharacters.forbiddenTriplets.contains(byte) {
            throw MalformedMessage(.path)
        }
    }

    /// Whether the normal form is the character itself.
    var decodes: Bool {
        PathCharacters.plain.contains(byte) && !PathCharacters.keptTriplets.contains(byte)
    }
}

extension [UInt8] {
    fileprivate mutating func appendNormalised(
        _ source: Span<UInt8>
    ) throws(MalformedMessage) {
        var index = 0
        while index < source.count {
            let byte = source[index]
            if byte == 0x25 {
                let triplet = try PercentTriplet(source, at: index)
                if triplet.decodes {
                    append(triplet.byte)
                } else {
                    appendTriplet(triplet.byte)
                }
                index += 3
            } else {
                if PathCharacters.encoded.contains(byte) {
                    appendTriplet(byte)
                } else {
                    append(byte)
                }
                index += 1
            }
        }
    }

    private mutating func appendTriplet(_ byte: UInt8) {
        append(0x25)
        append((byte >> 4).uppercaseHexadecimalDigit)
        append((byte & 0x0F).uppercaseHexadecimalDigit)
    }
}

extension UInt8 {
    fileprivate var uppercaseHexadecimalDigit: UInt8 { self < 10 ? self + 0x30 : self + 0x37 }
}

extension [UInt8] {
    /// RFC 3986, section 5.2.4, in place.
    ///
    /// - Throws: `path` for a segment that would lead above the root: no honest client sends one.
    fileprivate mutating func removeDotSegments() throws(MalformedMessage) {
        var read = 0
        var written = 0
        // Every turn begins at the "/" before a segment.
        while read < count {
            let next = self[(read + 1)...].firstIndex(of: 0x2F) ?? count
            switch self[(read + 1)..<next] {
            case [0x2E]: break
            case [0x2E, 0x2E]:
                guard let parent = self[..<written].lastIndex(of: 0x2F) else {
                    throw MalformedMessage(.path)
                }
                written = parent
            default:
                for index in read..<next {
                    self[written] = self[index]
                    written += 1
                }
                read = next
                continue
            }
            // A dot segment at the end leaves its slash: it named a folder.
            if next == count {
                self[written] = 0x2F
                written += 1
            }
            read = next
        }
        removeSubrange(written...)
    }
}

extension Span where Element == UInt8 {
    /// How many empty segments a path starts with.
    ///
    /// They are dropped: a backend that resolves its target as a URL reference takes `//name/admin`
    /// for the path `/admin` on a host `name` (RFC 3986, section 4.2), and no route foresees that.
    fileprivate var leadingEmptySegments: Int {
        var index = 1
        while index < count, self[index] == 0x2F { index += 1 }
        return index - 1
    }

    /// Whether a segment is "." or "..".
    ///
    /// - Throws: `path` for what a second reading could turn into another path: a dot segment with
    ///   a path parameter ("..;x", also encoded) or a space behind it, a triplet that was encoded
    ///   twice, and UTF-8 that spells an ASCII character too long.
    fileprivate func hasDotSegments() throws(MalformedMessage) -> Bool {
        var found = false
        for index in indices {
            switch self[index] {
            case 0x2F: if try startsDotSegment(at: index + 1) { found = true }
            case 0x25 where startsAmbiguousTriplet(at: index): throw MalformedMessage(.path)
            default: continue
            }
        }
        return found
    }

    private func startsDotSegment(at start: Int) throws(MalformedMessage) -> Bool {
        var index = start
        while index < count, self[index] == 0x2E { index += 1 }
        let dots = index - start
        if dots == 0 || dots > 2 { return false }
        if index == count || self[index] == 0x2F { return true }
        if self[index] == 0x3B { throw MalformedMessage(.path) }
        switch triplet(at: index) {
        case 0x3B, 0x20: throw MalformedMessage(.path)
        default: return false
        }
    }

    private func startsAmbiguousTriplet(at index: Int) -> Bool {
        switch triplet(at: index) {
        case 0x25:
            index + 4 < count && self[index + 3].hexadecimalValue != nil
                && self[index + 4].hexadecimalValue != nil
        case 0xC0, 0xC1: triplet(at: index + 3).map { 0x80...0xBF ~= $0 } ?? false
        case 0xE0: triplet(at: index + 3).map { 0x80...0x9F ~= $0 } ?? false
        case 0xF0: triplet(at: index + 3).map { 0x80...0x8F ~= $0 } ?? false
        default: false
        }
    }

    private func triplet(at index: Int) -> UInt8? {
        guard index <= count - 3, self[index] == 0x25,
            let high = self[index + 1].hexadecimalValue,
            let low = self[index + 2].hexadecimalValue
        else { return nil }
        return high << 4 | low
    }
}
