public import HTTP

/// What must hold for any bytes that arrive as a head. Fuzzers and the replay of their corpus share
/// it.
///
/// Each function returns nil, or what is wrong.
public enum HeadInvariants {
    /// Small enough that inputs of a fuzzer's size meet every limit.
    public static let limits = HeadLimits(bytes: 1024, fields: 16, target: 200)

    /// Room for the same message written by us: one more space a line, three bytes for one in a
    /// path.
    private static let ampleLimits = HeadLimits(bytes: 64 << 10, fields: 100, target: 16 << 10)

    /// A request head: the verdict does not depend on how the bytes arrive; the path and the fields
    /// have no forbidden feature; written out and read again it means the same.
    public static func violation(ofRequest bytes: [UInt8]) -> String? {
        let whole = outcomeOfRequest(bytes, limits: limits, arrivals: [bytes.count])
        for arrivals in waysToArrive(bytes.count) {
            let pieces = outcomeOfRequest(bytes, limits: limits, arrivals: arrivals)
            if pieces != whole { return "in pieces \(pieces), at once \(whole)" }
        }
        guard case .message(let request) = whole else { return nil }
        if let feature = forbiddenFeature(ofPath: request.path) { return "path has \(feature)" }
        if let line = request.fields.first(where: { !isCleanLine($0) }) {
            return "field line \(line) is not clean"
        }
        var expected = request
        expected.fields = fieldsToWrite(request)
        let written = write(expected)
        expected.length = written.count
        let again = outcomeOfRequest(written, limits: ampleLimits, arrivals: [written.count])
        return again == .message(expected) ? nil : "written out \(again), before \(request)"
    }

    /// A response head, as an answer to GET and to HEAD.
    public static func violation(ofResponse bytes: [UInt8]) -> String? {
        for method in [Method.get, .head] {
            let whole = outcomeOfResponse(
                bytes, to: method, limits: limits, arrivals: [bytes.count])
            for arrivals in waysToArrive(bytes.count) {
                let pieces = outcomeOfResponse(
                    bytes, to: method, limits: limits, arrivals: arrivals)
                if pieces != whole { return "in pieces \(pieces), at once \(whole)" }
            }
            guard case .message(let response) = whole else { continue }
            if let line = response.fields.first(where: { !isCleanLine($0) }) {
                return "field line \(line) is not clean"
            }
            let written = write(response)
            var expected = response
            expected.length = written.count
            let again = outcomeOfResponse(
                written, to: method, limits: ampleLimits, arrivals: [written.count])
            if again != .message(expected) { return "written out \(again), before \(response)" }
        }
        return nil
    }

    /// Byte by byte, in two halves, and in sevens.
    private static func waysToArrive(_ count: Int) -> [[Int]] {
        [
            Array(0...count), [count / 2, count],
            Array(stride(from: 0, to: count, by: 7)) + [count],
        ]
    }

    /// What a normal path must not have, told without the parser's own code (pitfall P2).
    public static func forbiddenFeature(ofPath path: [UInt8]) -> String? {
        if path == [0x2A] { return nil }
        guard path.first == 0x2F else { return "no slash at the start" }
        if path.contains(where: { $0 <= 0x20 || $0 >= 0x7F }) {
            return "a byte outside visible ASCII"
        }
        let text = String(decoding: path, as: UTF8.self)
        for character in "\\#?\"<>[]^`{|}" where text.contains(character) {
            return "a raw \(character)"
        }
        let segments = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        if text.hasPrefix("//") { return "an empty segment at the start" }
        if segments.contains(".") || segments.contains("..") { return "a dot segment" }
        for triplet in text.split(separator: "%", omittingEmptySubsequences: false).dropFirst() {
            let digits = triplet.prefix(2)
            guard isTriplet(digits), digits == digits.uppercased(),
                let value = UInt8(digits, radix: 16)
            else { return "a triplet %\(digits)" }
            let character = Character(UnicodeScalar(value))
            if value < 0x20 || value == 0x7F || "/\\".contains(character) {
                return "a hidden byte %\(digits)"
            }
            if value < 0x80,
                character.isLetter || character.isNumber || "-._~:@".contains(character)
            {
                return "a needless triplet %\(digits)"
            }
            if value == 0x25, isTriplet(triplet.dropFirst(2).prefix(2)) {
                return "a triplet encoded twice"
            }
        }
        return nil
    }

    private static func isTriplet(_ digits: Substring) -> Bool {
        digits.count == 2 && digits.allSatisfy(\.isHexDigit)
    }

    private static func isCleanLine(_ line: FieldCopy) -> Bool {
        let isName = line.name.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x3A }
        let isValue = line.value.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }
        let isTrimmed =
            ![0x20, 0x09].contains(line.value.first ?? 0x21)
            && ![0x20, 0x09].contains(line.value.last ?? 0x21)
        return !line.name.isEmpty && isName && isValue && isTrimmed
    }

    /// The fields with the canonical authority, also where it came from an absolute-form target.
    private static func fieldsToWrite(_ request: RequestCopy) -> [FieldCopy] {
        let authority = request.host + (request.port.map { Array(":\($0)".utf8) } ?? [])
        var fields = request.fields
        if let index = fields.firstIndex(where: { $0.known == .host }) {
            fields[index].value = authority
        } else if !authority.isEmpty {
            fields.insert(FieldCopy(host: authority), at: 0)
        }
        return fields
    }

    private static func write(_ request: RequestCopy) -> [UInt8] {
        var bytes = request.method + [0x20] + request.path
        if let query = request.query { bytes += [0x3F] + query }
        bytes += Array(request.version == .http11 ? " HTTP/1.1\r\n".utf8 : " HTTP/1.0\r\n".utf8)
        write(request.fields, to: &bytes)
        return bytes
    }

    private static func write(_ response: ResponseCopy) -> [UInt8] {
        let version = response.version == .http11 ? "HTTP/1.1" : "HTTP/1.0"
        var bytes = Array("\(version) \(response.status) ".utf8) + response.reason + [0x0D, 0x0A]
        write(response.fields, to: &bytes)
        return bytes
    }

    private static func write(_ fields: [FieldCopy], to bytes: inout [UInt8]) {
        for line in fields { bytes += line.name + Array(": ".utf8) + line.value + [0x0D, 0x0A] }
        bytes += [0x0D, 0x0A]
    }
}
