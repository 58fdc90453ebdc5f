/// A complete answer.
public struct HTTPResponse: Sendable {
    /// 200 to 599.
    public let status: UInt16
    /// Field lines in the order in which they came; names in lower case.
    public let fields: [(name: String, value: String)]
    /// The content, framing removed.
    public let body: [UInt8]

    public init(status: UInt16, fields: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// The value of a field; several lines are joined by ", " (RFC 9110, section 5.3). `name` in
    /// lower case.
    public func value(of name: String) -> String? {
        let values = fields.filter { $0.name == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// For how long the answer stays fresh: `max-age` of Cache-Control less Age (RFC 9111,
    /// section 4.2), zero where caching is refused; nil when the answer says nothing. Never
    /// negative.
    public var freshness: Duration? {
        guard let control = value(of: "cache-control") else { return nil }
        var maximumAge: Int64?
        for directive in control.split(separator: ",") {
            let parts = directive.split(separator: "=", maxSplits: 1)
            let name = parts.first.map { String($0).trimmedLowercased } ?? ""
            switch name {
            case "no-store", "no-cache": return .zero
            case "max-age":
                // The first counts, and what is no number is stale (RFC 9111, section 4.2.1).
                if maximumAge != nil { continue }
                maximumAge = parts.count == 2 ? Self.deltaSeconds(parts[1]) ?? 0 : 0
            default: continue
            }
        }
        guard let maximumAge else { return nil }
        let age = value(of: "age").flatMap { Self.deltaSeconds($0[...]) } ?? 0
        return .seconds(max(0, maximumAge - age))
    }

    /// RFC 9111, section 1.2.2: digits; what is too large counts as 2^31.
    private static func deltaSeconds(_ text: Substring) -> Int64? {
        let digits = text.trimmedLowercased.filter { $0 != "\"" }
        guard !digits.isEmpty, digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return min(Int64(digits) ?? 1 << 31, 1 << 31)
    }
}

extension StringProtocol {
    fileprivate var trimmedLowercased: String {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        let start = drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return start[...last].lowercased()
    }
}
