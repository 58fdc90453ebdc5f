extension Span where Element == UInt8 {
    /// Whether a request target needs the slow look: false for nearly all, in which there is neither
    /// a query, nor percent-encoding, nor the start of a token.
    var mayHoldSecret: Bool {
        for index in 0..<count {
            switch self[index] {
            case UInt8(ascii: "?"), UInt8(ascii: "%"): return true
            case UInt8(ascii: "J"):
                if index >= 2, self[index - 1] == UInt8(ascii: "y"),
                    self[index - 2] == UInt8(ascii: "e")
                {
                    return true
                }
            default: continue
            }
        }
        return false
    }
}

/// The target without what must not be logged.
func redact(_ target: [UInt8]) -> [UInt8] {
    guard let query = target.firstIndex(of: UInt8(ascii: "?")) else { return target }
    return target[...query] + Array("[redacted]".utf8)
}
